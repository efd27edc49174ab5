//! Setup for tests that need a Docker Engine.

use std::process::{Command, Stdio};

/// The image that `scripts/engine` loads into the Docker Engine.
pub const BASE_IMAGE: &str = "ralph-base:bookworm";

/// Returns whether the test has to be skipped because `RALPH_TEST_NO_DOCKER` is set.
///
/// # Panics
/// If Docker is not disabled and no Docker Engine with [`BASE_IMAGE`] responds: a test must not
/// pass because the machine cannot run it.
#[must_use]
#[expect(clippy::print_stderr, reason = "skipped tests say so")]
pub fn skip_without_docker() -> bool {
    if std::env::var_os("RALPH_TEST_NO_DOCKER").is_some_and(|value| !value.is_empty()) {
        eprintln!("skipped: RALPH_TEST_NO_DOCKER is set");
        return true;
    }
    let inspected = Command::new("docker")
        .args(["image", "inspect", "--format", "{{.Id}}", BASE_IMAGE])
        .stdin(Stdio::null())
        .output();
    let why = match inspected {
        Ok(output) if output.status.success() => return false,
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => format!("cannot run `docker`: {error}"),
    };
    panic!(
        "no Docker Engine with `{BASE_IMAGE}` answers ({why}): run `scripts/engine`, \
         or set RALPH_TEST_NO_DOCKER=1 to skip this test"
    );
}
