//! The common fixture: a home, a directory of programs, and a search of all files left behind.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use jiff::{SignedDuration, Timestamp};
use ralph_guest::best_effort;

use crate::support::{RalphOutput, TestRalph};

/// A fake token in an issuer's format, assembled at run time so that secret scanners ignore it.
pub(crate) fn canary() -> String {
    format!("sk-ant-{}-{}", "oat01", "Canary7x".repeat(6))
}

pub(crate) struct TokenTestEnv {
    ralph: TestRalph,
    programs: tempfile::TempDir,
    environment: Vec<(String, String)>,
}

impl TokenTestEnv {
    /// Creates a home without tokens, and an empty `PATH`.
    pub(crate) fn new() -> Self {
        Self {
            ralph: TestRalph::new(),
            programs: tempfile::tempdir().unwrap(),
            environment: Vec::new(),
        }
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Puts a shell script on `PATH`.
    pub(crate) fn program(self, name: &str, script: &str) -> Self {
        let path = self.programs().join(name);
        fs::write(
            &path,
            format!(
                "#!/bin/sh\nset -eu\ncd {}\n{script}",
                self.programs().display()
            ),
        )
        .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    pub(crate) fn programs(&self) -> &Path {
        self.programs.path()
    }

    /// Defines an agent `mine` in the user configuration.
    pub(crate) fn describe_mine(&self) {
        let text = "[mine]\ncommand = [\"my-agent\"]\n";
        self.ralph.configure("agents.toml", text);
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.ralph.state().root().to_owned()
    }

    /// Returns the file of a slot.
    pub(crate) fn file(&self, service: &str) -> PathBuf {
        self.home().join("tokens").join(format!("{service}.json"))
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.ralph.command(args);
        command.env("PATH", self.programs());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command with this standard input.
    pub(crate) fn run_with_input(&self, args: &[&str], input: &str) -> RalphOutput {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It may end without having read it.
        best_effort(child.stdin.take().unwrap().write_all(input.as_bytes()));
        child.wait_with_output().unwrap().into()
    }

    pub(crate) fn run(&self, args: &[&str]) -> RalphOutput {
        self.run_with_input(args, "")
    }

    /// Stores a token without validating it against an API.
    #[track_caller]
    pub(crate) fn store(&self, args: &[&str], input: &str) -> RalphOutput {
        let args = [&["store-token", "--no-validate"], args].concat();
        let seen = self.run_with_input(&args, input);
        assert_eq!(seen.code, 0, "{seen:?}");
        seen
    }

    /// Asserts that no file of the home contains a text, except these.
    #[track_caller]
    pub(crate) fn assert_absent(&self, text: &str, except: &[PathBuf]) {
        for file in files(&self.home()) {
            let bytes = fs::read(&file).unwrap();
            let is_there = bytes
                .windows(text.len())
                .any(|window| window == text.as_bytes());
            assert_eq!(is_there, except.contains(&file), "{}", file.display());
        }
    }
}

pub(crate) fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Returns the time this many days and some minutes from now, in milliseconds, and its date.
pub(crate) fn in_days(days: i64) -> (i64, String) {
    let moment = Timestamp::now() + SignedDuration::from_mins(days * 24 * 60 + 5);
    let date = moment.to_zoned(jiff::tz::TimeZone::UTC).date().to_string();
    (moment.as_millisecond(), date)
}

pub(crate) fn output(code: i32, stdout: &str, stderr: &str) -> RalphOutput {
    RalphOutput {
        code,
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
    }
}
