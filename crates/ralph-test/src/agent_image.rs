//! An image with real coding agents.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::{BASE_IMAGE, agent_program, skip_without_docker};

/// Returns the name of an image with the real `claude` and `codex`, built from [`BASE_IMAGE`] on
/// first use; `None` if agents or Docker tests are disabled.
///
/// # Panics
/// If they are enabled and the image cannot be built.
#[must_use]
pub fn agent_image() -> Option<String> {
    let programs: Vec<PathBuf> = ["claude", "codex"]
        .into_iter()
        .map(agent_program)
        .collect::<Option<_>>()?;
    if skip_without_docker() {
        return None;
    }
    match ensure_image(&programs) {
        Ok(tag) => Some(tag),
        Err(error) => panic!("cannot build the agent image: {error}"),
    }
}

fn ensure_image(programs: &[PathBuf]) -> io::Result<String> {
    let tag = format!("ralph-test-agents:{}", image_version(programs)?);
    // Tests run concurrently; only one of them builds the image.
    let lock = File::create(std::env::temp_dir().join("ralph-test-agents.lock"))?;
    lock.lock()?;
    if !run_docker(Path::new("/"), &["image", "inspect", &tag])?
        .status
        .success()
    {
        build_image(&tag, programs)?;
    }
    Ok(tag)
}

fn run_docker(directory: &Path, arguments: &[&str]) -> io::Result<Output> {
    Command::new("docker")
        .args(arguments)
        .current_dir(directory)
        .output()
}

/// Returns a version that identifies these programs on this base image, by size and modification time.
fn image_version(programs: &[PathBuf]) -> io::Result<String> {
    let inspect = ["image", "inspect", "--format", "{{.Id}}", BASE_IMAGE];
    let inspected = run_docker(Path::new("/"), &inspect)?;
    let base = String::from_utf8_lossy(&inspected.stdout).into_owned();
    let base = base.trim().trim_start_matches("sha256:");
    let mut version = base.chars().take(8).collect::<String>();
    for program in programs {
        let file = fs::metadata(program)?;
        write!(version, "-{}-{}", file.len(), file.mtime()).map_err(io::Error::other)?;
    }
    Ok(version)
}

fn build_image(tag: &str, programs: &[PathBuf]) -> io::Result<()> {
    let mut recipe = format!("FROM {BASE_IMAGE}\n");
    let context = tempfile::tempdir()?;
    for program in programs {
        let name = program.file_name().unwrap_or_default();
        fs::copy(program, context.path().join(name))?;
        let name = name.display();
        writeln!(recipe, "COPY {name} /usr/local/bin/{name}").map_err(io::Error::other)?;
    }
    fs::write(context.path().join("Dockerfile"), recipe)?;
    let built = run_docker(context.path(), &["build", "--quiet", "--tag", tag, "."])?;
    if built.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&built.stderr).into_owned();
    Err(io::Error::other(why))
}
