//! The seccomp profile of the Docker sandbox, tested from inside a container.

use std::process::Command;

use ralph_test::{BASE_IMAGE, skip_without_docker};

const PROFILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/src/sandbox/docker/seccomp.json"
);
const CLOSED: &str = include_str!("seccomp/closed.py");
const WORKS: &str = include_str!("seccomp/works.py");

/// Every capability that could allow a blocked call: calls that still fail are blocked by the
/// profile.
const CAPABILITIES: &[&str] = &[
    "DAC_READ_SEARCH",
    "NET_ADMIN",
    "NET_RAW",
    "SYSLOG",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_CHROOT",
    "SYS_MODULE",
    "SYS_PACCT",
    "SYS_PTRACE",
    "SYS_RAWIO",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
];

/// Runs `script` in a container under `profile` and returns its output.
fn run(profile: &str, options: &[&str], script: &str) -> String {
    let output = Command::new("docker")
        .args(["run", "--rm", "--network=none", "--cap-drop=ALL"])
        .args([
            "--security-opt=no-new-privileges",
            "--security-opt",
            &format!("seccomp={profile}"),
        ])
        .args(options)
        .args([BASE_IMAGE, "python3", "-c", script])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

fn with_capabilities() -> Vec<String> {
    CAPABILITIES
        .iter()
        .map(|name| format!("--cap-add={name}"))
        .collect()
}

/// Returns the lines of `text` that are not in `other`.
fn lines_missing_in<'a>(other: &str, text: &'a str) -> Vec<&'a str> {
    text.lines()
        .filter(|line| !other.lines().any(|known| known == *line))
        .collect()
}

#[test]
fn blocked_system_calls_stay_blocked_with_every_capability() {
    if skip_without_docker() {
        return;
    }
    let mut expected = include_str!("seccomp/closed.txt").to_owned();
    if cfg!(target_arch = "x86_64") {
        expected += include_str!("seccomp/closed_x86_64.txt");
    }
    let capabilities = with_capabilities();
    let options: Vec<&str> = capabilities.iter().map(String::as_str).collect();

    let printed = run(PROFILE, &options, CLOSED);
    assert_eq!(
        (
            lines_missing_in(&expected, &printed),
            lines_missing_in(&printed, &expected)
        ),
        (vec![], vec![]),
        "unexpected lines, and lines that were expected"
    );

    // Without the profile, no call fails with EPERM: the table does not depend on a missing
    // capability.
    let without = run("unconfined", &options, CLOSED);
    let refused: Vec<&str> = without
        .lines()
        .filter(|line| line.ends_with("EPERM"))
        .collect();
    assert_eq!(refused, Vec::<&str>::new());
}

#[test]
fn needed_system_calls_work_without_capabilities() {
    if skip_without_docker() {
        return;
    }
    let printed = run(PROFILE, &["--user=1000:1000"], WORKS);
    let failed: Vec<&str> = printed
        .lines()
        .filter(|line| !line.ends_with(": ok"))
        .collect();
    assert_eq!(failed, Vec::<&str>::new());
    // One line for each function that is marked as a need.
    assert_eq!(printed.lines().count(), WORKS.matches("\n@need\n").count());
}
