//! An image with package managers.

use std::fs::File;
use std::io::Write as _;
use std::process::{Command, Stdio};

use ralph_core::id::Digest;

const DOCKERFILE: &str = include_str!("tools.Dockerfile");

/// Returns the name of an image with pip, npm, cargo, apt, git, curl, wget and node. It is built
/// once per machine, which takes some minutes and needs the network that apt uses.
///
/// # Panics
/// If it cannot be built.
pub fn tools_image() -> String {
    let digest = Digest::compute(DOCKERFILE.as_bytes());
    let image = format!("ralph-test-tools:{}", &digest.as_str()[..12]);
    // Concurrent tests would build it twice.
    let lock = std::env::temp_dir().join("ralph-test-tools.lock");
    let lock = File::create(lock).expect("a lock");
    lock.lock().expect("a lock");
    if !image_exists(&image) {
        build_image(&image, "host", DOCKERFILE);
    }
    image
}

/// An image whose programs trust an additional certificate authority. It is removed when it is
/// dropped.
#[derive(Debug)]
pub struct TrustingImage {
    name: String,
}

impl TrustingImage {
    /// Adds a PEM-encoded authority to those that [`tools_image`] trusts.
    ///
    /// # Panics
    /// If the image cannot be built.
    pub fn for_authority(pem: &str) -> Self {
        let digest = Digest::compute(pem.as_bytes());
        let name = format!("ralph-test-trusting:{}", &digest.as_str()[..12]);
        let lines = pem.trim().replace('\n', "\\n");
        let dockerfile = format!(
            "FROM {}\nRUN printf '%b\\n' '{lines}' > /usr/local/share/ca-certificates/fake.crt && update-ca-certificates\n",
            tools_image()
        );
        build_image(&name, "none", &dockerfile);
        Self { name }
    }

    /// Returns the image name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for TrustingImage {
    fn drop(&mut self) {
        let mut docker = Command::new("docker");
        docker.args(["image", "rm", "--force", &self.name]);
        // An image that remains is small: one layer on top of another image.
        drop(docker.output());
    }
}

fn image_exists(image: &str) -> bool {
    let mut docker = Command::new("docker");
    docker.args(["image", "inspect", image]);
    docker.output().is_ok_and(|output| output.status.success())
}

/// Builds an image from a Dockerfile without a context.
fn build_image(image: &str, network: &str, dockerfile: &str) {
    let mut docker = Command::new("docker")
        .args([
            "build",
            "--quiet",
            "--force-rm",
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
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cannot build `{image}`: {stderr}");
}
