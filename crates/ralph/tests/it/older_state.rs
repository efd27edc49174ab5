//! A state directory that an earlier version wrote: it opens, resumes and passes its audit.
//!
//! `fixtures/state-0.1.0.tar.gz` has four runs of one project, recorded with a scripted model and
//! the `local` sandbox: one succeeded, one failed by its budget, one was paused and one was killed
//! in the middle of an action. Journals contain absolute paths, so the archive is unpacked to the
//! directory in which it was recorded.

use std::fs::{self, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::project::ProjectOutput;

const ROOT: &str = "/tmp/ralph-state-0.1.0";
const ARCHIVE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/it/fixtures/state-0.1.0.tar.gz"
);

const SUCCEEDED: &str = "261118-041900-ad81";
const FAILED: &str = "261118-041903-10f5";
const PAUSED: &str = "261118-041903-b297";
const KILLED: &str = "261118-041946-82bb";

/// The unpacked state directory; removed on drop.
struct OlderState {
    program: &'static str,
    /// Locked while the directory is in use: its path is the same in every process.
    _lock: File,
}

impl OlderState {
    fn unpack() -> Self {
        let lock = File::options()
            .create(true)
            .append(true)
            .open(format!("{ROOT}.lock"))
            .unwrap();
        lock.lock().unwrap();
        remove(Path::new(ROOT));
        let unpacked = Command::new("tar")
            .args(["-xzf", ARCHIVE, "-C", "/tmp"])
            .status()
            .unwrap();
        assert!(unpacked.success(), "{unpacked}");
        fs::DirBuilder::new()
            .mode(0o700)
            .create(format!("{ROOT}/home"))
            .unwrap();
        Self {
            program: env!("CARGO_BIN_EXE_ralph"),
            _lock: lock,
        }
    }

    fn ralph(&self, arguments: &[&str]) -> ProjectOutput {
        let output = Command::new(self.program)
            .args(arguments)
            .current_dir("/")
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", format!("{ROOT}/home"))
            .env("RALPH_HOME", format!("{ROOT}/state"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        ProjectOutput::from_output(&output)
    }

    /// Asserts that the audit of a run finds nothing.
    fn assert_audit_passes(&self, run: &str) {
        let audit = self.ralph(&["audit", run]).expect(0);
        assert!(audit.stdout.contains(" 0 failed"), "{}", audit.stdout);
    }
}

impl Drop for OlderState {
    fn drop(&mut self) {
        remove(Path::new(ROOT));
    }
}

fn remove(path: &Path) {
    if let Err(error) = fs::remove_dir_all(path) {
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}");
    }
}

fn run_directory(run: &str) -> PathBuf {
    Path::new(ROOT).join("state/runs").join(run)
}

#[test]
fn a_state_directory_of_version_0_1_0_opens_resumes_and_passes_its_audit() {
    let state = OlderState::unpack();

    let runs = state.ralph(&["runs"]).expect(0).stdout;
    for (run, status) in [
        (SUCCEEDED, "succeeded"),
        (FAILED, "failed"),
        (PAUSED, "paused"),
        (KILLED, "interrupted"),
    ] {
        let line = runs.lines().find(|line| line.starts_with(run)).unwrap();
        assert!(line.contains(status), "{line}");
        state.assert_audit_passes(run);
        state.ralph(&["show", run]).expect(0);
        state.ralph(&["logs", run]).expect(0);
    }

    let replies = fs::read_to_string(run_directory(SUCCEEDED).join("journal.jsonl")).unwrap();
    for run in [PAUSED, KILLED] {
        state.ralph(&["resume", run]).expect(0);
        state.assert_audit_passes(run);
        let shown = state.ralph(&["show", run]).expect(0).stdout;
        assert!(shown.contains("succeeded"), "{shown}");
    }
    let unchanged = fs::read_to_string(run_directory(SUCCEEDED).join("journal.jsonl")).unwrap();
    assert_eq!(unchanged, replies, "a finished run is not touched");
}
