//! Path conventions.
//!
//! A pattern is a file name in which `*` matches anything, optionally preceded by parent
//! directories. A pattern that ends with `/` matches a directory and everything below it. A pattern
//! that starts with `/` is anchored at the root of the repository; the others match anywhere. Only
//! [`TEST_CLASSES`] are case-sensitive.

/// Files and directories of tests.
pub(super) const TESTS: &[&str] = &[
    "test/",
    "tests/",
    "__tests__/",
    "spec/",
    "specs/",
    "e2e/",
    "cypress/",
    "testdata/",
    "fixtures/",
    "__fixtures__/",
    "__mocks__/",
    "__snapshots__/",
    "test_*.py",
    "*_test.py",
    "tests.py",
    "conftest.py",
    "*_test.go",
    "*_spec.rb",
    "*_test.rb",
    "test_*.rb",
    "*_test.exs",
    "*_test.dart",
    "*.test.*",
    "*.spec.*",
    "*-test.js",
    "*-test.ts",
    "test.js",
    "test.mjs",
    "test.cjs",
    "test.ts",
    "test.rs",
    "tests.rs",
    "*_test.rs",
    "*_tests.rs",
    "*_test.c",
    "*_test.cc",
    "*_test.cpp",
    "*_unittest.cc",
    "test_*.c",
    "test_*.cpp",
    "test.sh",
    "test_*.sh",
    "test-*.sh",
    "*_test.sh",
    "*.bats",
    "*.t",
    "*.snap",
    "*.feature",
];

/// Names of test classes. Case-sensitive, so that `latest.java` does not match.
pub(super) const TEST_CLASSES: &[&str] = &[
    "Test*.java",
    "*Test.java",
    "*Tests.java",
    "*IT.java",
    "*Test.kt",
    "*Tests.kt",
    "*Spec.kt",
    "*Test.scala",
    "*Spec.scala",
    "*Spec.groovy",
    "*Test.groovy",
    "*Test.php",
    "*Test.cs",
    "*Tests.cs",
    "*Test.swift",
    "*Tests.swift",
    "*Spec.hs",
    "*Test.hs",
];

/// Files that CI systems execute.
pub(super) const CI: &[&str] = &[
    "/.github/workflows/",
    "/.github/actions/",
    "action.yml",
    "action.yaml",
    ".gitlab-ci.yml",
    "/.gitlab/",
    "/.circleci/",
    "/.buildkite/",
    "/.woodpecker/",
    ".woodpecker.yml",
    ".drone.yml",
    ".travis.yml",
    ".cirrus.yml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "appveyor.yml",
    "jenkinsfile",
];

/// Code that reviewers cannot read and that may run instead of the sources.
pub(super) const COMPILED: &[&str] = &[
    "__pycache__/",
    "node_modules/",
    "*.pyc",
    "*.pyo",
    "*.class",
    "*.jar",
    "*.o",
    "*.a",
    "*.so",
    "*.dll",
    "*.dylib",
    "*.exe",
    "*.node",
    "*.wasm",
];

/// Files that pin the code of dependencies.
pub(super) const LOCKFILES: &[&str] = &[
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bun.lock",
    "bun.lockb",
    "deno.lock",
    "cargo.lock",
    "poetry.lock",
    "uv.lock",
    "pdm.lock",
    "pipfile.lock",
    "requirements*.txt",
    "constraints*.txt",
    "gemfile.lock",
    "composer.lock",
    "go.sum",
    "mix.lock",
    "gradle.lockfile",
    "packages.lock.json",
    "flake.lock",
];

/// Files that configure a test runner, or define the commands of a check.
pub(super) const RUNNERS: &[&str] = &[
    "package.json",
    "deno.json",
    "deno.jsonc",
    "bunfig.toml",
    "tsconfig*.json",
    ".babelrc*",
    "babel.config.*",
    "jest.config.*",
    "jest.setup.*",
    "vitest.*.*",
    "vite.config.*",
    "playwright.config.*",
    "cypress.config.*",
    "karma.conf.*",
    "ava.config.*",
    "wdio.conf.*",
    ".mocharc*",
    "mocha.opts",
    ".nycrc*",
    ".c8rc*",
    "pytest.ini",
    ".pytest.ini",
    "tox.ini",
    "setup.cfg",
    "pyproject.toml",
    "noxfile.py",
    ".coveragerc",
    "pipfile",
    "manage.py",
    "cargo.toml",
    "build.rs",
    ".config/nextest.toml",
    ".cargo/config",
    ".cargo/config.toml",
    "rust-toolchain",
    "rust-toolchain.toml",
    "go.mod",
    "go.work",
    "makefile",
    "gnumakefile",
    "*.mk",
    "justfile",
    ".justfile",
    "taskfile.y*ml",
    "rakefile",
    "cmakelists.txt",
    "ctesttestfile.cmake",
    "cmakepresets.json",
    "meson.build",
    "build.bazel",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "settings.gradle",
    "settings.gradle.kts",
    "gemfile",
    ".rspec",
    "phpunit.xml*",
    "composer.json",
    "mix.exs",
    "directory.build.*",
];

/// The reason for files that configure later runs.
pub(super) const NEEDS_APPROVAL: &str = "configures ralph: changed — approve to rebuild";

/// Files that run when a developer opens, installs or builds the repository.
pub(super) const FOR_DEVELOPERS: &[(&str, &str)] = &[
    (".agent-loop/", NEEDS_APPROVAL),
    ("ralph.toml", NEEDS_APPROVAL),
    ("config/models.yaml", NEEDS_APPROVAL),
    ("config/agents.toml", NEEDS_APPROVAL),
    (".env", "credentials and settings that ralph reads"),
    (".vscode/", "read by an editor that opens the repository"),
    (".idea/", "read by an editor that opens the repository"),
    (".zed/", "read by an editor that opens the repository"),
    (
        "*.code-workspace",
        "read by an editor that opens the repository",
    ),
    (".exrc", "read by an editor that opens the repository"),
    (".nvim.lua", "read by an editor that opens the repository"),
    (
        ".dir-locals.el",
        "read by an editor that opens the repository",
    ),
    ("eslint.config.*", "run by editors and linters"),
    (".eslintrc*", "run by editors and linters"),
    (".prettierrc*", "run by editors and linters"),
    (
        ".devcontainer/",
        "run when a development container is created",
    ),
    (
        ".devcontainer.json",
        "run when a development container is created",
    ),
    (".envrc", "run when a shell enters the directory"),
    ("mise.toml", "run when a shell enters the directory"),
    (".mise.toml", "run when a shell enters the directory"),
    ("shell.nix", "run when a shell enters the directory"),
    ("flake.nix", "run when a shell enters the directory"),
    (".husky/", "run by git"),
    (".githooks/", "run by git"),
    ("lefthook.y*ml", "run by git"),
    (".pre-commit-config.yaml", "run by git"),
    (".gitattributes", "read by git"),
    (".gitmodules", "read by git"),
    (".gitconfig", "read by git"),
    (".claude/", "read by a coding agent"),
    ("claude.md", "read by a coding agent"),
    ("agents.md", "read by a coding agent"),
    (".cursor/", "read by a coding agent"),
    (".cursorrules", "read by a coding agent"),
    (".windsurfrules", "read by a coding agent"),
    (".gemini/", "read by a coding agent"),
    (".codex/", "read by a coding agent"),
    (".mcp.json", "read by a coding agent"),
    ("/.github/copilot-instructions.md", "read by a coding agent"),
    ("package.json", "run on install"),
    ("binding.gyp", "run on install"),
    (".npmrc", "read on install"),
    (".yarnrc*", "read on install"),
    (".yarn/", "run on install"),
    (".pnpmfile.cjs", "run on install"),
    ("setup.py", "run on install"),
    ("setup.cfg", "read on install"),
    ("pyproject.toml", "read on install"),
    ("sitecustomize.py", "run at every start of Python"),
    ("*.pth", "run at every start of Python"),
    ("conftest.py", "run by every test"),
    ("build.rs", "run by every build"),
    ("cargo.toml", "read by every build"),
    (".cargo/", "read by every build"),
    ("rust-toolchain*", "read by every build"),
    ("makefile", "run by every build"),
    ("gnumakefile", "run by every build"),
    ("justfile", "run by every build"),
    ("taskfile.y*ml", "run by every build"),
    ("rakefile", "run by every build"),
    ("gemfile", "run on install"),
    ("cmakelists.txt", "run by every build"),
    (".bazelrc", "read by every build"),
    ("build.gradle*", "run by every build"),
    ("settings.gradle*", "run by every build"),
    ("gradlew*", "run by every build"),
    ("gradle/wrapper/", "run by every build"),
    ("mvnw*", "run by every build"),
    (".mvn/", "run by every build"),
    ("pom.xml", "run by every build"),
];

/// Files that the host runs with the repository's token.
pub(super) const WORKFLOWS: &[&str] = &[
    "/.github/workflows/",
    "/.github/actions/",
    "action.yml",
    "action.yaml",
];

/// Returns whether a path matches one of the patterns, ignoring case.
pub(super) fn matches_any(patterns: &[&str], path: &str) -> bool {
    let path = path.to_lowercase();
    patterns
        .iter()
        .any(|pattern| matches_pattern(pattern, &path))
}

/// Returns whether a path matches a pattern.
pub(super) fn matches_pattern(pattern: &str, path: &str) -> bool {
    let (is_rooted, pattern) = match pattern.strip_prefix('/') {
        Some(pattern) => (true, pattern),
        None => (false, pattern),
    };
    let parts: Vec<&str> = path.split('/').collect();
    if let Some(directory) = pattern.strip_suffix('/') {
        let wanted: Vec<&str> = directory.split('/').collect();
        let above = &parts[..parts.len() - 1];
        let mut windows = above.windows(wanted.len());
        return if is_rooted {
            above.starts_with(&wanted)
        } else {
            windows.any(|window| window == wanted)
        };
    }
    let wanted: Vec<&str> = pattern.split('/').collect();
    let Some(above) = parts.len().checked_sub(wanted.len()) else {
        return false;
    };
    let names = wanted.iter().zip(&parts[above..]);
    (!is_rooted || above == 0)
        && names
            .into_iter()
            .all(|(wanted, part)| matches_name(wanted, part))
}

/// Returns whether a name matches a pattern in which `*` matches anything.
fn matches_name(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(start) else {
        return false;
    };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        // The leftmost match leaves the most for the remaining pieces.
        let Some((_, after)) = name.split_once(piece) else {
            return false;
        };
        name = after;
    }
    name.ends_with(last)
}
