//! Repositories of tests.

use std::path::Path;
use std::process::Command;

/// Runs git in a directory, without the configuration of this machine, and returns its output.
///
/// # Panics
/// If git is missing or fails.
#[track_caller]
pub fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=Test", "-c", "user.email=test@localhost"])
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git can be started");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {errors}");
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

/// Creates a repository from the files of a directory: one commit on `main`.
///
/// # Panics
/// If git is missing or fails.
#[track_caller]
pub fn create_repository(directory: &Path) {
    git(directory, &["init", "--quiet", "--initial-branch=main"]);
    git(directory, &["add", "."]);
    let commit = ["commit", "--quiet", "--allow-empty", "--message=Start"];
    git(directory, &commit);
}
