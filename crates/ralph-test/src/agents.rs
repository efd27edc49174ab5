//! What the tests that need a coding agent's real program begin with.

use std::path::{Path, PathBuf};

/// Returns where the program of an agent is, such as `claude`; none if `RALPH_TEST_NO_AGENTS` asks
/// the calling test to end at once.
///
/// # Panics
/// If agents are not left out and this one is not installed: a test must not seem to pass because
/// the machine cannot run it.
#[must_use]
#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
pub fn agent_program(name: &str) -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if variable("RALPH_TEST_NO_AGENTS").is_some() {
        eprintln!("left out: RALPH_TEST_NO_AGENTS is set");
        return None;
    }
    let cache = variable("XDG_CACHE_HOME").map_or_else(
        || Path::new(&variable("HOME").unwrap_or_else(|| "/root".into())).join(".cache"),
        PathBuf::from,
    );
    let program = cache.join("ralph/agents/bin").join(name);
    assert!(
        program.is_file(),
        "the program of `{name}` is not at `{}`: run `scripts/agents`, or set \
         RALPH_TEST_NO_AGENTS=1 to leave this test out",
        program.display()
    );
    Some(program)
}
