//! Temporary images for tests.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use ralph_core::id::Digest;
use ralph_test::BASE_IMAGE;
use serde_json::json;

/// An image that is removed on drop.
pub(super) struct TemporaryImage {
    pub(super) tag: String,
}

impl TemporaryImage {
    /// Builds an image on top of the default one from the lines of a Dockerfile.
    pub(super) fn build(lines: &str) -> Self {
        let image = Self { tag: unique_tag() };
        let file = format!("FROM {BASE_IMAGE}\n{lines}\n");
        docker_with_input(
            &["build", "--quiet", "--tag", &image.tag, "-"],
            file.as_bytes(),
        );
        image
    }

    /// Creates an image for this architecture, with a single non-executable file.
    pub(super) fn bare(architecture: &str) -> Self {
        let image = Self { tag: unique_tag() };
        let layer = archive(&[("file", b"")]);
        let digest = Digest::compute(&layer);
        let digest = digest.as_str();
        let config = json!({
            "architecture": architecture,
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{digest}")]},
        });
        let manifest = json!([{
            "Config": "config.json",
            "RepoTags": [image.tag],
            "Layers": ["layer.tar"],
        }]);
        let all = archive(&[
            ("layer.tar", &layer),
            ("config.json", config.to_string().as_bytes()),
            ("manifest.json", manifest.to_string().as_bytes()),
        ]);
        docker_with_input(&["load"], &all);
        image
    }
}

fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, *bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

impl Drop for TemporaryImage {
    fn drop(&mut self) {
        let removed = Command::new("docker")
            .args(["image", "rm", "--force", &self.tag])
            .output();
        // A leftover image does no harm.
        drop(removed);
    }
}

fn unique_tag() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("ralph-test-hostile:{}-{count}", std::process::id())
}

/// Runs `docker` with input; it must succeed.
fn docker_with_input(arguments: &[&str], input: &[u8]) {
    let mut docker = Command::new("docker")
        .args(arguments)
        // The legacy builder, which every Docker Engine has.
        .env("DOCKER_BUILDKIT", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    docker.stdin.take().unwrap().write_all(input).unwrap();
    let output = docker.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "`docker {}`: {stderr}",
        arguments.join(" ")
    );
}
