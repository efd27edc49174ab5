//! Tests that look at the whole process run in one of their own.

use std::process::Command;

/// A variable that only such a process has; it is also what commands must not see.
pub(super) const CANARY: &str = "RALPH_TEST_CANARY";

/// Tells whether this process runs one test alone. If not, it starts one that does, and the test is
/// over when that one has passed.
pub(crate) fn runs_in_own_process(test: &str) -> bool {
    if std::env::var_os(CANARY).is_some() {
        return true;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(CANARY, "sings-in-the-mine")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "no test is named `{test}`");
    false
}
