//! Runs tests that inspect their whole process in a separate one.

use std::process::Command;

/// Set only in such a process; commands must not see it.
pub(super) const CANARY: &str = "RALPH_TEST_CANARY";

/// Returns whether this process runs one test alone. If not, it starts a process that does; once
/// that has passed, the test is over.
pub(crate) fn runs_in_own_process(test: &str) -> bool {
    if std::env::var_os(CANARY).is_some() {
        return true;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(CANARY, "sings-in-the-mine")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    assert!(printed.contains("1 passed"), "no test is named `{test}`");
    false
}
