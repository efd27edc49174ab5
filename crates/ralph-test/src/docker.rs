//! What the tests that need a Docker Engine begin with.

use std::process::{Command, Stdio};

/// The image that `scripts/engine` puts into the engine.
pub const BASE_IMAGE: &str = "ralph-base:bookworm";

/// Returns whether the calling test is to end at once, because `RALPH_TEST_NO_DOCKER` asks for it.
///
/// # Panics
/// If Docker is not left out and no engine with [`BASE_IMAGE`] answers: a test must not seem to
/// pass because the machine cannot run it.
#[must_use]
#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
pub fn skip_without_docker() -> bool {
    if std::env::var_os("RALPH_TEST_NO_DOCKER").is_some_and(|value| !value.is_empty()) {
        eprintln!("left out: RALPH_TEST_NO_DOCKER is set");
        return true;
    }
    let answer = Command::new("docker")
        .args(["image", "inspect", "--format", "{{.Id}}", BASE_IMAGE])
        .stdin(Stdio::null())
        .output();
    let why = match answer {
        Ok(output) if output.status.success() => return false,
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => format!("cannot run `docker`: {error}"),
    };
    panic!(
        "no Docker Engine with `{BASE_IMAGE}` answers ({why}): run `scripts/engine`, \
         or set RALPH_TEST_NO_DOCKER=1 to leave this test out"
    );
}
