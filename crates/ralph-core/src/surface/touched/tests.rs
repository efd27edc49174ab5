use super::*;

fn changed(path: &str, change: PathChange) -> ChangedPath {
    ChangedPath {
        path: path.to_owned(),
        change,
    }
}

fn modified(path: &str, commands: &[&str]) -> Surface {
    let commands: Vec<String> = commands.iter().map(ToString::to_string).collect();
    inspect_changes(&[changed(path, PathChange::Modified)], &commands)
}

fn whys(findings: &[SurfaceFinding]) -> Vec<&str> {
    findings
        .iter()
        .map(|finding| finding.why.as_str())
        .collect()
}

#[test]
fn finds_files_that_affect_the_checks() {
    let test = "test file";
    let runner = "configures the checks";
    let lock = "pins dependencies";
    let compiled = "compiled code that may run instead of the source";
    for (path, why) in [
        ("pkg/__pycache__/thing.cpython-311.pyc", compiled),
        ("lib/thing.jar", compiled),
        ("web/node_modules/left-pad/index.js", compiled),
        ("tests/it/main.rs", test),
        ("crates/core/src/verdict/tests.rs", test),
        ("src/test/java/com/example/Thing.java", test),
        ("src/ThingTest.java", test),
        ("src/ThingIT.java", test),
        ("test_thing.py", test),
        ("pkg/thing_test.py", test),
        ("conftest.py", test),
        ("pkg/thing_test.go", test),
        ("web/thing.test.ts", test),
        ("web/thing.spec.jsx", test),
        ("web/__tests__/thing.js", test),
        ("web/__snapshots__/thing.snap", test),
        ("spec/thing_spec.rb", test),
        ("lib/thing_spec.rb", test),
        ("t/01-basic.t", test),
        ("run.bats", test),
        ("TESTS/Thing.py", test),
        ("jest.config.ts", runner),
        ("web/vitest.config.mts", runner),
        ("pytest.ini", runner),
        ("tox.ini", runner),
        ("setup.cfg", runner),
        ("pyproject.toml", runner),
        (".mocharc.json", runner),
        ("karma.conf.js", runner),
        ("crates/core/Cargo.toml", runner),
        ("web/package.json", runner),
        ("Makefile", runner),
        ("justfile", runner),
        ("noxfile.py", runner),
        (".config/nextest.toml", runner),
        ("pom.xml", runner),
        ("phpunit.xml.dist", runner),
        ("package-lock.json", lock),
        ("Cargo.lock", lock),
        ("requirements-dev.txt", lock),
        ("go.sum", lock),
        (".github/workflows/ci.yml", "runs in CI"),
        (".gitlab-ci.yml", "runs in CI"),
        (".circleci/config.yml", "runs in CI"),
        ("Jenkinsfile", "runs in CI"),
    ] {
        assert_eq!(whys(&modified(path, &[]).verification), [why], "{path}");
    }
}

#[test]
fn finds_files_that_a_check_calls() {
    for (path, command, is_named) in [
        ("scripts/check.sh", "bash scripts/check.sh --all", true),
        ("scripts/check.sh", "./scripts/check.sh", true),
        ("scripts/check.sh", "set -e; 'scripts/check.sh'&&true", true),
        ("ci/jest.json", "npx jest --config=ci/jest.json", true),
        ("web/check.sh", "cd web && ./check.sh", true),
        ("check", "./check", true),
        ("pkg/smoke.py", "python -m pkg.smoke", true),
        ("pkg/smoke/__main__.py", "python3 -m pkg.smoke", true),
        ("qa/a.py", "pytest qa/a.py::test_one", true),
        // A directory of sources is the subject of a check, not part of it.
        ("src/main.py", "ruff check src", false),
        ("src/main.py", "ruff check src/", false),
        ("scripts/recheck.sh", "bash check.sh", false),
        ("web/check", "cd web && check", false),
        ("pkg/smoke.py", "echo pkg.smoke", false),
        ("src/main.rs", "", false),
    ] {
        let expected: Vec<String> = is_named
            .then(|| format!("named in `{command}`"))
            .into_iter()
            .collect();
        assert_eq!(
            whys(&modified(path, &[command]).verification),
            expected,
            "{path}: {command}"
        );
    }
    let long = format!("scripts/check.sh {}", "x".repeat(100));
    let expected = format!("named in `scripts/check.sh {}…`", "x".repeat(43));
    assert_eq!(
        whys(&modified("scripts/check.sh", &[&long]).verification),
        [expected]
    );
}

#[test]
fn finds_files_that_run_on_developer_machines() {
    for (path, why) in [
        (
            ".vscode/tasks.json",
            "read by an editor that opens the repository",
        ),
        (
            ".vscode/settings.json",
            "read by an editor that opens the repository",
        ),
        (
            "web/.idea/workspace.xml",
            "read by an editor that opens the repository",
        ),
        (".envrc", "run when a shell enters the directory"),
        (".husky/pre-commit", "run by git"),
        (".githooks/post-checkout", "run by git"),
        (".pre-commit-config.yaml", "run by git"),
        (".gitattributes", "read by git"),
        (".claude/settings.json", "read by a coding agent"),
        (".cursor/rules/a.mdc", "read by a coding agent"),
        ("AGENTS.md", "read by a coding agent"),
        (
            ".devcontainer/devcontainer.json",
            "run when a development container is created",
        ),
        ("package.json", "run on install"),
        ("web/.npmrc", "read on install"),
        ("setup.py", "run on install"),
        ("crates/core/build.rs", "run by every build"),
        ("Makefile", "run by every build"),
        ("gradle/wrapper/gradle-wrapper.jar", "run by every build"),
        (".cargo/config.toml", "read by every build"),
    ] {
        assert_eq!(
            whys(&modified(path, &[]).executes_for_developers),
            [why],
            "{path}"
        );
    }
}

#[test]
fn finds_files_that_the_host_runs() {
    for (path, is_workflow) in [
        (".github/workflows/ci.yml", true),
        (".github/workflows/deep/er.yml", true),
        (".GitHub/Workflows/ci.yml", true),
        (".github/actions/setup/run.sh", true),
        ("action.yml", true),
        ("tools/action.yaml", true),
        ("docs/.github/workflows/ci.yml", false),
        (".github/dependabot.yml", false),
        (".github/workflows", false),
        ("src/action.rs", false),
    ] {
        assert_eq!(
            !modified(path, &[]).workflows.is_empty(),
            is_workflow,
            "{path}"
        );
    }
}

#[test]
fn ignores_ordinary_files() {
    for path in [
        "README.md",
        "src/main.rs",
        "src/lib/contest.py",
        "src/latest.java",
        "src/attestation.go",
        "web/inspector.ts",
        "docs/testing.md",
        "src/makefile_parser.rs",
        "assets/logo.svg",
        "LICENSE",
        "src/package.rs",
        "special/thing.rb",
        "",
    ] {
        assert!(modified(path, &["cargo test"]).is_empty(), "{path}");
    }
}

#[test]
fn deleted_tests_are_listed_separately() {
    let paths = [
        changed("tests/a.rs", PathChange::Deleted),
        changed("tests/b.rs", PathChange::Added),
        changed("src/main.rs", PathChange::Deleted),
        changed(".husky/pre-commit", PathChange::Deleted),
        changed(".github/workflows/ci.yml", PathChange::Deleted),
    ];
    let finding = |path: &str, why: &str| SurfaceFinding {
        path: path.to_owned(),
        why: why.to_owned(),
    };
    let expected = Surface {
        verification: vec![
            finding("tests/a.rs", "test file, deleted"),
            finding("tests/b.rs", "test file"),
            finding(".github/workflows/ci.yml", "runs in CI, deleted"),
        ],
        executes_for_developers: vec![],
        workflows: vec![finding(
            ".github/workflows/ci.yml",
            "run by the host with the repository's token, deleted",
        )],
        deleted_tests: vec!["tests/a.rs".to_owned()],
        ..Surface::default()
    };
    assert_eq!(inspect_changes(&paths, &[]), expected);
}
