//! Tests with command lines that cannot fail, that hide failures, and that are valid checks.

use super::lint_command;

/// Checks that always succeed.
const CANNOT_FAIL: [&str; 74] = [
    "true",
    ":",
    "/bin/true",
    "exit 0",
    "exit 0; pytest",
    "# pytest",
    "  # TODO: write a test",
    "true # pytest",
    "pytest || true",
    "pytest || :",
    "pytest || exit 0",
    "pytest || echo failed",
    "pytest || echo 'no tests' >&2",
    "pytest; true",
    "pytest; :",
    "pytest; exit 0",
    "pytest; echo done",
    "pytest; echo $?",
    "pytest\ntrue",
    "pytest && true || true",
    "pytest && echo ok || echo failed",
    "true || pytest",
    "pytest &",
    "pytest > /dev/null 2>&1 &",
    "pytest & wait",
    "nohup pytest &",
    "if pytest; then echo ok; fi",
    "if pytest; then true; else true; fi",
    "if false; then pytest; fi",
    "if ! pytest; then echo failed; fi",
    "! false",
    "! exit 1 | false",
    "echo ok",
    "printf '3 passed\\n'",
    "echo \"$(pytest)\"",
    "export RESULT=$(pytest)",
    "test 1",
    "[ 1 ]",
    "[ ok ]",
    "[[ 1 ]]",
    "test -n yes",
    "test -z ''",
    "[ 1 = 1 ]",
    "[ 1 -eq 1 ]",
    "test -d .",
    "(pytest; true)",
    "(pytest) || true",
    "{ pytest || true; }",
    "{ pytest; } || :",
    "(exit 0)",
    "sh -c 'pytest || true'",
    "bash -c \"pytest; exit 0\"",
    "bash -lc 'true'",
    "/bin/sh -c 'if pytest; then :; fi'",
    "sh -c 'sh -c \"pytest || true\"'",
    "timeout 60 pytest || true",
    "timeout -k 5 60 true",
    "env CI=1 true",
    "CI=1 true",
    "nice -n 5 echo ok",
    "time true",
    "exec true",
    "eval 'pytest || true'",
    "pytest | true",
    "pytest | echo ok",
    "pytest 2>/dev/null || true",
    "cd app && pytest || true",
    "set -e; pytest && echo ok; true",
    "set +e; pytest; true",
    "trap 'exit 0' EXIT; pytest",
    "for t in a b; do sh $t || true; done",
    "git status",
    "find . -name '*.py'",
    "sleep 1",
];

/// Checks that can succeed although something failed.
const HIDE_FAILURES: [&str; 12] = [
    "pytest | tee log",
    "pytest 2>&1 | tee log.txt",
    "npm test | cat",
    "cargo test | tail -20",
    "pytest |& head -5",
    "(cd app && pytest | tee log)",
    "cd app && make test | sed 's/x/y/'",
    "for t in tests/*.sh; do sh \"$t\"; done",
    "make -i test",
    "npm run test --if-present",
    "set -e; pytest | tee log; npm test",
    "pytest | tee log || exit 1; npm test",
];

/// Checks that can fail.
const CHECKS: [&str; 65] = [
    "pytest",
    "npm test",
    "python -m pytest -q tests/",
    "cargo test --workspace",
    "sh test.sh",
    "grep -q one a.txt",
    "sh greet.sh Ada | grep -x 'Hello, Ada!'",
    "test -s base.txt",
    "test \"$(cat names.txt | wc -l)\" -eq 3",
    "[ \"$(wc -l < a.txt)\" = 3 ]",
    "[[ $x == 1 && $y == 2 ]]",
    "test -n \"$HOME\"",
    "test \"$X\"",
    "! grep -rn TODO src",
    "! pytest",
    "cd app && pytest",
    "cd app; pytest",
    "true && pytest",
    "pytest && echo ok",
    "pytest && npm test",
    "pytest || exit 1",
    "pytest || { echo failed; exit 1; }",
    "pytest || (echo failed; false)",
    "pytest || npm test",
    "pytest; exit $?",
    "pytest; rc=$?; echo $rc; exit $rc",
    "pytest || exit 1; true",
    "set -e; pytest; true",
    "set -e\npytest\necho done",
    "set -euo pipefail; pytest | tee log; echo done",
    "bash -o pipefail -c 'pytest | tee log'",
    "bash -euo pipefail -c 'pytest | tee log; echo done'",
    "bash -ec 'pytest; echo done'",
    "pytest | tee log; exit ${PIPESTATUS[0]}",
    "if pytest; then echo ok; else exit 1; fi",
    "if pytest; then echo ok; else echo no; false; fi",
    "if [ -f a ]; then pytest; fi",
    "pytest & wait $!",
    "(pytest)",
    "{ pytest; }",
    "sh -c 'pytest'",
    "sh -c \"pytest || exit 3\"",
    "timeout 60 pytest",
    "env -u HOME CI=1 pytest",
    "exec pytest",
    "out=$(pytest)",
    "echo '|| true' | grep -q x",
    "grep -q '; true' a.txt",
    "grep '#' a.txt",
    "python -c 'print(\"|| true\")'",
    "echo x > out/file",
    "./true",
    "scripts/echo",
    "git diff --exit-code",
    "git diff --quiet HEAD",
    "find . -name '*.py' -exec pylint {} +",
    "find src -name x",
    "curl -fsS localhost | jq -e .ok",
    "while ! curl -fs localhost; do sleep 1; done",
    "until test -e ready; do sleep 1; done",
    "case $X in a) true;; esac",
    "cat <<EOF | sh\ntrue\nEOF",
    "f() { true; }; pytest",
    "set -e; for t in tests/*.sh; do sh \"$t\"; done",
    "set -e; npm run lint --if-present || true; npm test",
];

#[test]
fn checks_that_cannot_fail_are_errors() {
    for command in CANNOT_FAIL {
        let finding = lint_command(command).unwrap_or_else(|| panic!("`{command}` is accepted"));
        assert_eq!(finding.code, "check-cannot-fail", "{command}: {finding}");
    }
}

#[test]
fn checks_that_hide_failures_are_warnings() {
    for command in HIDE_FAILURES {
        let finding = lint_command(command).unwrap_or_else(|| panic!("`{command}` is accepted"));
        assert_eq!(finding.code, "check-hides-failure", "{command}: {finding}");
    }
}

#[test]
fn checks_that_can_fail_are_accepted() {
    for command in CHECKS {
        assert_eq!(lint_command(command), None, "{command}");
    }
}

#[test]
fn the_reason_names_the_part_of_the_command() {
    for (command, message) in [
        (
            "pytest || true",
            "the check `pytest || true` cannot fail: `|| true` turns every failure into success",
        ),
        (
            "pytest; echo done",
            "the check `pytest; echo done` cannot fail: its last command, `echo done`, always succeeds",
        ),
        (
            "# pytest",
            "the check `# pytest` cannot fail: it runs no command",
        ),
        (
            "pytest &",
            "the check `pytest &` cannot fail: `pytest &` runs in the background, so its exit code is ignored",
        ),
        (
            "pytest | tee log",
            "the check `pytest | tee log` can succeed although something failed: the exit code of a pipe is that of its last command, `tee`; `pytest` can fail unnoticed",
        ),
    ] {
        assert_eq!(lint_command(command).unwrap().message, message);
    }
}

#[test]
fn unsupported_syntax_is_accepted() {
    let nested = "(".repeat(5000);
    let long = "true; ".repeat(5000);
    for command in [
        "'", "\"", "$(", "`", "(", ")", "{", "if", "if true", "a |", "a &&", "|| a", ";;", "<",
        "& &", &nested, &long,
    ] {
        assert_eq!(lint_command(command), None, "{command:.20}");
    }
}
