//! An image with package managers.

use std::fs::File;
use std::io::Write as _;
use std::process::{Command, Stdio};

use ralph_core::id::Digest;

/// What is in the image.
const DOCKERFILE: &str = include_str!("tools.Dockerfile");

/// Returns the name of an image that has pip, npm, cargo, apt, git, curl, wget and node. It is built
/// once for each machine, which takes some minutes and needs the network that apt uses.
///
/// # Panics
/// If it cannot be built.
pub fn tools_image() -> String {
    let digest = Digest::of(DOCKERFILE.as_bytes());
    let image = format!("ralph-test-tools:{}", &digest.as_str()[..12]);
    // Two tests at a time would build it twice.
    let lock = std::env::temp_dir().join("ralph-test-tools.lock");
    let lock = File::create(lock).expect("a lock");
    lock.lock().expect("a lock");
    if !is_there(&image) {
        build(&image, "host", DOCKERFILE);
    }
    image
}

fn is_there(image: &str) -> bool {
    let mut docker = Command::new("docker");
    docker.args(["image", "inspect", image]);
    docker.output().is_ok_and(|output| output.status.success())
}

/// Builds an image from a Dockerfile alone.
fn build(image: &str, network: &str, dockerfile: &str) {
    let mut docker = Command::new("docker")
        .args([
            "build",
            "--quiet",
            "--network",
            network,
            "--tag",
            image,
            "-",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("docker");
    let mut input = docker.stdin.take().expect("a pipe");
    input.write_all(dockerfile.as_bytes()).expect("a reader");
    drop(input);
    let output = docker.wait_with_output().expect("docker");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cannot build `{image}`: {said}");
}
