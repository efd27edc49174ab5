//! An image with the programs of real coding agents.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{BASE_IMAGE, agent_program, left_out_without_docker};

/// Returns the name of an image with the real `claude` and `codex`, made from [`BASE_IMAGE`] when it
/// is first needed; none if agents or Docker are left out.
///
/// # Panics
/// If they are not left out and the image cannot be made.
#[must_use]
pub fn agent_image() -> Option<String> {
    let programs: Vec<PathBuf> = ["claude", "codex"]
        .into_iter()
        .map(agent_program)
        .collect::<Option<_>>()?;
    if left_out_without_docker() {
        return None;
    }
    let tag = format!("ralph-test-agents:{}", version(&programs));
    // Tests run at the same time; one of them makes it.
    let lock = fs::File::create(std::env::temp_dir().join("ralph-test-agents.lock")).unwrap();
    lock.lock().unwrap();
    let mut inspect = Command::new("docker");
    inspect.args(["image", "inspect", &tag]);
    if !inspect.output().unwrap().status.success() {
        build(&tag, &programs);
    }
    Some(tag)
}

/// Returns what tells these programs on this base from others.
fn version(programs: &[PathBuf]) -> String {
    let inspected = Command::new("docker")
        .args(["image", "inspect", "--format", "{{.Id}}", BASE_IMAGE])
        .output()
        .unwrap();
    let base = String::from_utf8(inspected.stdout).unwrap();
    let mut version = base.trim().trim_start_matches("sha256:")[..8].to_owned();
    for program in programs {
        let file = fs::metadata(program).unwrap();
        write!(version, "-{}-{}", file.len(), file.mtime()).unwrap();
    }
    version
}

fn build(tag: &str, programs: &[PathBuf]) {
    let cache = programs[0].canonicalize().unwrap();
    // On the same file system, so that nothing has to be copied twice.
    let context = tempfile::tempdir_in(cache.parent().unwrap()).unwrap();
    let mut recipe = format!("FROM {BASE_IMAGE}\n");
    for program in programs {
        let name = Path::new(program.file_name().unwrap());
        let source = program.canonicalize().unwrap();
        fs::hard_link(source, context.path().join(name)).unwrap();
        writeln!(recipe, "COPY {0} /usr/local/bin/{0}", name.display()).unwrap();
    }
    fs::write(context.path().join("Dockerfile"), recipe).unwrap();
    let built = Command::new("docker")
        .args(["build", "--quiet", "--tag", tag, "."])
        .current_dir(context.path())
        .output()
        .unwrap();
    assert!(built.status.success(), "{built:?}");
}
