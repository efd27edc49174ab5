//! Tests for the files that a command line runs.

use super::*;

const TREE: &[&str] = &[
    "Makefile",
    "a.txt",
    "app/main.py",
    "ci/all.sh",
    "ci/one.sh",
    "conftest.py",
    "expected.txt",
    "package.json",
    "pyproject.toml",
    "sub/package.json",
    "sub/run.sh",
    "tests/test_a.py",
    "tests/test_b.py",
    "tools/check.py",
];

fn files() -> TrackedFiles {
    TrackedFiles::new(TREE.iter().map(ToString::to_string))
}

fn executed(line: &str, scripts: &[(&str, &str)]) -> Vec<String> {
    let mut inputs = CheckInputs::default();
    inputs.add_line(line, &files());
    while let Some(path) = inputs.next_script() {
        let text = scripts.iter().find(|(name, _)| *name == path);
        inputs.add_script(&path, text.map_or("", |(_, text)| text), &files());
    }
    inputs.executed.into_iter().collect()
}

#[test]
fn scripts_in_a_command_are_found() {
    for (line, expected) in [
        ("sh ci/one.sh", vec!["ci/one.sh"]),
        ("./ci/one.sh", vec!["ci/one.sh"]),
        ("cd sub && ./run.sh", vec!["sub/run.sh"]),
        ("cd sub; sh ../ci/one.sh", vec!["ci/one.sh"]),
        ("bash -c 'sh ci/one.sh'", vec!["ci/one.sh"]),
        (
            "for f in ci/*.sh; do sh $f; done",
            vec!["ci/all.sh", "ci/one.sh"],
        ),
        (
            "find ci -name '*.sh' -exec sh {} ;",
            vec!["ci/all.sh", "ci/one.sh"],
        ),
        ("run-parts ci", vec!["ci/all.sh", "ci/one.sh"]),
        (
            "make test",
            vec![
                "Makefile",
                "package.json",
                "pyproject.toml",
                "sub/package.json",
            ],
        ),
        ("grep -q one a.txt", vec![]),
        ("test -s a.txt", vec![]),
        ("sh -n /etc/x", vec![]),
    ] {
        let found = executed(line, &[]);
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        // A pattern may match more files than the shell would, never fewer.
        assert!(
            expected.iter().all(|path| found.contains(path)),
            "{line}: {found:?}"
        );
        assert!(expected.is_empty() == found.is_empty(), "{line}: {found:?}");
    }
}

#[test]
fn nested_scripts_are_found() {
    let scripts = [
        ("ci/all.sh", "#!/bin/sh\nset -e\nsh ci/one.sh\n"),
        ("ci/one.sh", "python3 tools/check.py\n"),
    ];
    let found = executed("sh ci/all.sh", &scripts);
    for path in ["ci/all.sh", "ci/one.sh", "tools/check.py"] {
        assert!(found.contains(&path.to_owned()), "{found:?}");
    }
    // A script runs in the caller's directory, or changes to the root.
    let script = [("ci/all.sh", "sh ./run.sh\nsh ci/one.sh\n")];
    let found = executed("cd sub && sh ../ci/all.sh", &script);
    assert_eq!(found, ["ci/all.sh", "ci/one.sh", "sub/run.sh"]);
    let found = executed("make test", &[("Makefile", "test:\n\t@sh ci/one.sh\n")]);
    assert!(found.contains(&"ci/one.sh".to_owned()), "{found:?}");
    let package = r#"{"scripts": {"test": "sh run.sh"}}"#;
    let found = executed("cd sub && npm test", &[("sub/package.json", package)]);
    assert!(found.contains(&"sub/run.sh".to_owned()), "{found:?}");
}

#[test]
fn a_runner_executes_its_tests_and_its_configuration() {
    let all = executed("pytest -q", &[]);
    assert_eq!(
        all,
        [
            "conftest.py",
            "pyproject.toml",
            "tests/test_a.py",
            "tests/test_b.py"
        ]
    );
    let one = executed("python3 -m pytest tests/test_a.py::test_x", &[]);
    assert_eq!(one, ["conftest.py", "pyproject.toml", "tests/test_a.py"]);
    let module = executed("python3 -m unittest tests.test_b.Case.test_y", &[]);
    assert!(module.contains(&"tests/test_b.py".to_owned()), "{module:?}");
    assert!(
        !module.contains(&"tests/test_a.py".to_owned()),
        "{module:?}"
    );
}

#[test]
fn only_changed_files_are_reported_and_existing_ones_come_first() {
    let changed = |path: &str, change| ChangedPath {
        path: path.to_owned(),
        change,
    };
    let mut inputs = CheckInputs::default();
    inputs.add_line("pytest; diff out.txt expected.txt", &files());
    let sizes = BTreeMap::from([("conftest.py".to_owned(), (3, 7))]);
    let finding = |changes: &[ChangedPath]| {
        let checks = [(
            "pytest".to_owned(),
            inputs.reviewable_changes(changes, &sizes),
        )];
        let finding = changed_input_findings(&checks, &sizes).pop();
        finding.map(|finding| finding.text)
    };
    let branch = [
        changed("app/main.py", PathChange::Modified),
        changed("tests/test_b.py", PathChange::Added),
        changed("conftest.py", PathChange::Modified),
        changed("tests/test_a.py", PathChange::Deleted),
    ];
    assert_eq!(
        finding(&branch).as_deref(),
        Some(
            "`pytest` runs files that this branch changed: `tests/test_a.py` (deleted), `conftest.py` (modified, +3 −7), `tests/test_b.py` (added)"
        )
    );
    assert_eq!(finding(&branch[..1]), None);
    assert_eq!(finding(&[changed("expected.txt", PathChange::Added)]), None);
    // The numbers of lines are unknown.
    assert_eq!(
        finding(&[changed("expected.txt", PathChange::Modified)]).as_deref(),
        Some("`pytest` runs files that this branch changed: `expected.txt` (modified)")
    );
}

#[test]
fn new_tests_are_not_reported_but_new_test_configuration_is() {
    let files = TrackedFiles::new(
        [
            "tests/test_new.py",
            "tests/__init__.py",
            "tests/run.sh",
            "tests/conftest.py",
        ]
        .map(ToOwned::to_owned),
    );
    let mut inputs = CheckInputs::default();
    inputs.add_line("pytest tests", &files);
    let touched = |path: &str, lines: u64| {
        let changed = [ChangedPath {
            path: path.to_owned(),
            change: PathChange::Added,
        }];
        let sizes = BTreeMap::from([(path.to_owned(), (lines, 0))]);
        !inputs.reviewable_changes(&changed, &sizes).is_empty()
    };
    assert!(!touched("tests/test_new.py", 10));
    assert!(!touched("tests/__init__.py", 0));
    assert!(touched("tests/__init__.py", 3));
    assert!(touched("tests/run.sh", 3));
    assert!(touched("tests/conftest.py", 3));
}

#[test]
fn checks_that_run_the_same_changed_files_share_a_finding() {
    let touched = |path: &str| {
        vec![ChangedPath {
            path: path.to_owned(),
            change: PathChange::Added,
        }]
    };
    let texts = |commands: &[(&str, &str)]| -> Vec<String> {
        let checks: Vec<_> = commands
            .iter()
            .map(|(command, path)| ((*command).to_owned(), touched(path)))
            .collect();
        let findings = changed_input_findings(&checks, &BTreeMap::new());
        findings.into_iter().map(|finding| finding.text).collect()
    };
    let end = "files that this branch changed: `x.sh` (added)";
    let all = [
        ("a", "x.sh"),
        ("b", "x.sh"),
        ("c", "x.sh"),
        ("d", "x.sh"),
        ("e", "y.sh"),
    ];
    assert_eq!(texts(&all[..1]), [format!("`a` runs {end}")]);
    assert_eq!(texts(&all[..2]), [format!("`a` and `b` run {end}")]);
    assert_eq!(texts(&all[..3]), [format!("`a`, `b` and `c` run {end}")]);
    assert_eq!(
        texts(&all),
        [
            format!("`a`, `b` and 2 more checks run {end}"),
            "`e` runs files that this branch changed: `y.sh` (added)".to_owned()
        ]
    );
}
