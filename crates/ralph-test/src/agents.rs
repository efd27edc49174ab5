//! Setup for tests that need a real coding agent.

use std::path::{Path, PathBuf};

/// Returns the path of an agent program such as `claude`, or `None` if the test has to be skipped
/// because `RALPH_TEST_NO_AGENTS` is set.
///
/// # Panics
/// If agents are not disabled and this one is not installed: a test must not pass because the
/// machine cannot run it.
#[must_use]
#[expect(clippy::print_stderr, reason = "skipped tests say so")]
pub fn agent_program(name: &str) -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if variable("RALPH_TEST_NO_AGENTS").is_some() {
        eprintln!("skipped: RALPH_TEST_NO_AGENTS is set");
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
         RALPH_TEST_NO_AGENTS=1 to skip this test",
        program.display()
    );
    Some(program)
}
