//! A project per ecosystem, and the test command that is found in it.

use super::python::is_test_file;
use super::{DetectedProject, LISTED_DIRECTORIES, ProjectFiles, READ_FILES, detect_project};
use crate::lint::{LintSeverity, lint_command};

/// Detects a project with these files; an empty text is a file that is not read.
fn detect(files: &[(&str, &str)]) -> DetectedProject {
    let mut project = ProjectFiles::default();
    for (name, text) in files {
        if READ_FILES.contains(name) || is_test_file(name) {
            project.add_text(*name, *text);
        } else {
            assert!(text.is_empty(), "{name} is not read");
            let directory = name.split_once('/').map(|(directory, _)| directory);
            assert!(directory.is_none_or(|it| LISTED_DIRECTORIES.contains(&it)));
            project.add_name(*name);
        }
    }
    let detected = detect_project(&project);
    for test in &detected.test_commands {
        let finding = lint_command(&test.command);
        assert_eq!(
            finding.map(|finding| finding.severity),
            None::<LintSeverity>,
            "{}",
            test.command
        );
        assert!(!test.origin.is_empty());
    }
    detected
}

/// Asserts the first language and the first test command of a project.
#[track_caller]
fn assert_tests(files: &[(&str, &str)], language: &str, command: &str) {
    let detected = detect(files);
    assert_eq!(detected.languages.first(), Some(&language), "{files:?}");
    let found = detected.test_commands.first();
    let found = found.map_or("", |test| test.command.as_str());
    assert_eq!(found, command, "{files:?}");
}

#[test]
fn node_projects_use_their_package_manager_and_install_their_dependencies() {
    let package = r#"{"scripts": {"test": "node --test"}}"#;
    let with_dependencies =
        r#"{"scripts": {"test": "jest"}, "devDependencies": {"jest": "^29"}, "dependencies": {}}"#;
    let declared = r#"{"scripts": {"test": "vitest run"}, "packageManager": "pnpm@9.1.0", "dependencies": {"a": "1"}}"#;
    let watching =
        r#"{"scripts": {"test": "react-scripts test"}, "dependencies": {"react-scripts": "5"}}"#;
    for (files, command) in [
        (vec![("package.json", package)], "npm test"),
        (
            vec![
                ("package.json", with_dependencies),
                ("package-lock.json", ""),
            ],
            "npm ci && npm test",
        ),
        (
            vec![("package.json", with_dependencies)],
            "npm install --no-package-lock && npm test",
        ),
        (
            vec![("package.json", with_dependencies), ("pnpm-lock.yaml", "")],
            "pnpm install --frozen-lockfile && pnpm test",
        ),
        (
            vec![("package.json", with_dependencies), ("yarn.lock", "")],
            "yarn install --frozen-lockfile && yarn test",
        ),
        (
            vec![
                ("package.json", with_dependencies),
                ("yarn.lock", ""),
                (".yarnrc.yml", ""),
            ],
            "yarn install --immutable && yarn test",
        ),
        (
            vec![("package.json", with_dependencies), ("bun.lock", "")],
            "bun install --frozen-lockfile && bun run test",
        ),
        (
            vec![("package.json", declared), ("package-lock.json", "")],
            "pnpm install --no-lockfile && pnpm test",
        ),
        (
            vec![("package.json", watching), ("package-lock.json", "")],
            "npm ci && CI=true npm test",
        ),
    ] {
        assert_tests(&files, "JavaScript", command);
    }
    let typed = [("package.json", package), ("tsconfig.json", "")];
    assert_tests(&typed, "TypeScript", "npm test");
}

#[test]
fn a_package_without_a_test_script_has_no_test_command() {
    for package in [
        r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#,
        r#"{"scripts": {"test": " "}}"#,
        r#"{"scripts": {"build": "tsc"}}"#,
        r#"{"scripts": {"test": ["a"]}}"#,
        "{}",
        "not JSON",
        "",
    ] {
        assert_tests(&[("package.json", package)], "JavaScript", "");
    }
}

#[test]
fn deno_projects_prefer_their_task() {
    let task = r#"{"tasks": {"test": "deno test -A"}}"#;
    assert_tests(&[("deno.json", task)], "TypeScript", "deno task test");
    assert_tests(&[("deno.jsonc", "{}")], "TypeScript", "deno test");
}

#[test]
fn python_projects_use_pytest_unless_they_configure_something_else() {
    let configured = "[project]\nname = \"a\"\n[tool.pytest.ini_options]\naddopts = \"-q\"\n";
    let listed = "[dependency-groups]\ndev = [\"pytest>=8\"]\n";
    for (files, command) in [
        (vec![("pyproject.toml", configured)], "python3 -m pytest"),
        (vec![("pytest.ini", "")], "python3 -m pytest"),
        (vec![("setup.cfg", "[tool:pytest]\n")], "python3 -m pytest"),
        (
            vec![("requirements-dev.txt", "pytest==8.0\n")],
            "python3 -m pytest",
        ),
        (
            vec![("setup.py", ""), ("tests/test_a.py", "")],
            "python3 -m pytest",
        ),
        (vec![("test_a.py", "")], "python3 -m pytest"),
        (
            vec![("test_a.py", "import unittest\n")],
            "python3 -m unittest",
        ),
        (
            vec![("tests/test_a.py", "from unittest import mock\n")],
            "python3 -m unittest discover -s tests",
        ),
        (
            vec![
                ("test_a.py", "import unittest\n"),
                ("test_b.py", "import pytest\n"),
            ],
            "python3 -m pytest",
        ),
        (
            vec![("pyproject.toml", listed), ("uv.lock", "")],
            "uv run pytest",
        ),
        (
            vec![("pyproject.toml", listed), ("poetry.lock", "")],
            "poetry install && poetry run pytest",
        ),
        (
            vec![("pyproject.toml", listed), ("pdm.lock", "")],
            "pdm install && pdm run pytest",
        ),
        (
            vec![("Pipfile", "pytest = \"*\"\n"), ("Pipfile.lock", "")],
            "pipenv sync --dev && pipenv run pytest",
        ),
        (
            vec![("tox.ini", "[tox]\nenv_list = py312\n[testenv]\n")],
            "tox",
        ),
        (vec![("noxfile.py", "")], "nox"),
        (vec![("manage.py", "")], "python3 manage.py test"),
        (vec![("pyproject.toml", "[project]\n")], ""),
        (vec![("tox.ini", "[flake8]\n")], ""),
    ] {
        assert_tests(&files, "Python", command);
    }
    let both = detect(&[("tox.ini", "[testenv]\n"), ("tests/test_a.py", "")]);
    let commands: Vec<&str> = both.test_commands.iter().map(|it| &*it.command).collect();
    assert_eq!(commands, ["python3 -m pytest", "tox"]);
}

#[test]
fn a_language_with_one_tool_needs_only_its_project_file() {
    for (file, language, command) in [
        ("go.mod", "Go", "go test ./..."),
        ("pom.xml", "Java", "mvn test"),
        ("mvnw", "Java", "./mvnw test"),
        ("build.gradle", "Java", "gradle test"),
        ("build.gradle.kts", "Kotlin", "gradle test"),
        ("build.sbt", "Scala", "sbt test"),
        ("project.clj", "Clojure", "lein test"),
        ("mix.exs", "Elixir", "mix deps.get && mix test"),
        ("rebar.config", "Erlang", "rebar3 eunit"),
        ("Package.swift", "Swift", "swift test"),
        ("stack.yaml", "Haskell", "stack test"),
        ("cabal.project", "Haskell", "cabal test all"),
        ("dune-project", "OCaml", "dune runtest"),
        (
            "test/runtests.jl",
            "Julia",
            "julia --project -e 'using Pkg; Pkg.test()'",
        ),
        ("cpanfile", "Perl", "prove -lr t"),
        ("Shop.sln", ".NET", "dotnet test"),
        ("shop.csproj", ".NET", "dotnet test"),
    ] {
        assert_tests(&[(file, "")], language, command);
    }
    let wrapped = [("build.gradle.kts", ""), ("gradlew", "")];
    assert_tests(&wrapped, "Java", "./gradlew test");
    assert_eq!(detect(&wrapped).test_commands.len(), 1);
}

#[test]
fn the_content_of_a_project_file_decides_about_the_command() {
    for (files, language, command) in [
        (
            vec![("Cargo.toml", "[package]\nname = \"a\"\n")],
            "Rust",
            "cargo test",
        ),
        (
            vec![("Cargo.toml", "[workspace]\nmembers = [\"a\"]\n")],
            "Rust",
            "cargo test --workspace",
        ),
        (
            vec![("Gemfile", "gem 'rspec'\n")],
            "Ruby",
            "bundle exec rspec",
        ),
        (
            vec![("Gemfile", ""), ("bin/rails", "")],
            "Ruby",
            "bin/rails test",
        ),
        (
            vec![("Rakefile", "Rake::TestTask.new\n")],
            "Ruby",
            "bundle exec rake test",
        ),
        (vec![("Gemfile", "gem 'sinatra'\n")], "Ruby", ""),
        (
            vec![("composer.json", r#"{"scripts": {"test": "pest"}}"#)],
            "PHP",
            "composer install --no-interaction && composer test",
        ),
        (
            vec![("composer.json", "{}"), ("phpunit.xml.dist", "")],
            "PHP",
            "composer install --no-interaction && vendor/bin/phpunit",
        ),
        (vec![("composer.json", "no")], "PHP", ""),
    ] {
        assert_tests(&files, language, command);
    }
}

#[test]
fn the_content_of_a_build_file_decides_about_the_command() {
    for (files, language, command) in [
        (
            vec![(
                "pubspec.yaml",
                "dependencies:\n  flutter:\n    sdk: flutter\n",
            )],
            "Dart",
            "flutter test",
        ),
        (
            vec![("pubspec.yaml", "name: a\n")],
            "Dart",
            "dart pub get && dart test",
        ),
        (
            vec![("build.zig", "b.step(\"test\", \"Run tests\")")],
            "Zig",
            "zig build test",
        ),
        (
            vec![("meson.build", "test('a', exe)\n")],
            "C or C++",
            "meson setup build && meson test -C build",
        ),
        (
            vec![("CMakeLists.txt", "enable_testing()\n")],
            "C or C++",
            "cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure",
        ),
        (vec![("CMakeLists.txt", "project(a)\n")], "C or C++", ""),
    ] {
        assert_tests(&files, language, command);
    }
}

#[test]
fn build_tools_are_used_if_they_have_a_test_target() {
    let first_command = |file: &str, text: &str| {
        let detected = detect(&[(file, text)]);
        assert_eq!(detected.languages, [""; 0]);
        let test = detected.test_commands.into_iter().next();
        test.map_or_else(String::new, |test| test.command)
    };
    for (file, text, command) in [
        (
            "Makefile",
            ".PHONY: test\nbuild:\n\tcc a.c\ntest: build\n\t./a\n",
            "make test",
        ),
        ("Makefile", "lint check: build\n\t./a\n", "make check"),
        ("GNUmakefile", "test::\n\t./a\n", "make test"),
        (
            "Makefile",
            "test := 1\n.PHONY: test\n# test: no\n\ttest: no\n",
            "",
        ),
        ("Makefile", "all: a.o\n", ""),
        (
            "justfile",
            "build:\n  cc a.c\ntest *args: build\n  ./a\n",
            "just test",
        ),
        ("Justfile", "@test:\n  ./a\n", "just test"),
        ("justfile", "test := '1'\ntest-all:\n  ./a\n", ""),
        (
            "Taskfile.yml",
            "version: '3'\ntasks:\n  test:\n    cmds: [./a]\n",
            "task test",
        ),
        ("Taskfile.yml", "version: '3'\n", ""),
        ("test.sh", "", "sh test.sh"),
        ("run_tests.sh", "", "sh run_tests.sh"),
        ("README.md", "", ""),
    ] {
        assert_eq!(first_command(file, text), command, "{file}: {text}");
    }
}

#[test]
fn the_runner_of_a_language_precedes_a_build_tool() {
    let detected = detect(&[
        ("Cargo.toml", "[package]\n"),
        ("Makefile", "test:\n\tcargo test\n"),
        ("package.json", r#"{"scripts": {"test": "node --test"}}"#),
    ]);
    assert_eq!(detected.languages, ["Rust", "JavaScript"]);
    let commands = detected.test_commands.iter();
    let commands: Vec<(&str, &str)> = commands.map(|it| (&*it.command, &*it.origin)).collect();
    assert_eq!(
        commands,
        [
            ("cargo test", "Cargo.toml"),
            ("npm test", "scripts.test in package.json"),
            ("make test", "the target `test` in Makefile"),
        ]
    );
}

#[test]
fn an_empty_project_has_neither_languages_nor_tests() {
    assert_eq!(detect(&[]), DetectedProject::default());
}

#[test]
fn c_is_recognised_by_its_sources_if_nothing_else_is() {
    let makefile = ("Makefile", "test: all\n\t./test\n");
    assert_tests(&[makefile, ("rev.c", "")], "C or C++", "make test");
    let with_extension = [makefile, ("Cargo.toml", "[package]\n"), ("rev.c", "")];
    assert_tests(&with_extension, "Rust", "cargo test");
}
