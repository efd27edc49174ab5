//! Python: pytest with the project's package manager, unittest, tox, nox and Django.

use super::detect::{DetectedProject, TestCommand};
use super::project_files::ProjectFiles;

/// Files of which each identifies a Python project.
const MARKERS: [&str; 12] = [
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "requirements.txt",
    "requirements-dev.txt",
    "Pipfile",
    "tox.ini",
    "noxfile.py",
    "pytest.ini",
    ".pytest.ini",
    "conftest.py",
    "manage.py",
];

/// Files that may list pytest as a dependency.
const DEPENDENCY_FILES: [&str; 5] = [
    "pyproject.toml",
    "requirements.txt",
    "requirements-dev.txt",
    "Pipfile",
    "setup.cfg",
];

pub(super) fn detect(files: &ProjectFiles, project: &mut DetectedProject) {
    let is_python = files.has_any(&MARKERS) || files.names().any(is_test_file);
    if is_python {
        let pytest = pytest_origin(files).map(|origin| pytest(files, origin));
        project.add("Python", pytest.or_else(|| test_files(files)));
        project.add_commands(other_runners(files));
    }
}

/// Returns pytest in the environment of the project's package manager.
fn pytest(files: &ProjectFiles, origin: String) -> TestCommand {
    let managed = [
        ("uv.lock", "uv run pytest"),
        ("poetry.lock", "poetry install && poetry run pytest"),
        ("pdm.lock", "pdm install && pdm run pytest"),
        ("Pipfile.lock", "pipenv sync --dev && pipenv run pytest"),
    ];
    let mut managed = managed.into_iter();
    match managed.find(|(lock_file, _)| files.has_any(&[lock_file])) {
        Some((lock_file, command)) => {
            TestCommand::new(command, format!("{origin}, with {lock_file}"))
        }
        None => TestCommand::new("python3 -m pytest", origin),
    }
}

/// Returns the reason why the project's tests can be run by pytest, which also runs those of
/// `unittest`.
fn pytest_origin(files: &ProjectFiles) -> Option<String> {
    let has_section = |text: &str| {
        let headers = ["[tool.pytest.ini_options]", "[tool:pytest]", "[pytest]"];
        let mut lines = text.lines().map(str::trim);
        lines.any(|line| headers.contains(&line))
    };
    if files.has_any(&["pytest.ini", ".pytest.ini"]) {
        return Some("pytest.ini".to_owned());
    }
    let configured = ["pyproject.toml", "setup.cfg", "tox.ini"];
    if let Some(file) = files.first_with(&configured, has_section) {
        return Some(format!("the settings of pytest in {file}"));
    }
    let lists_pytest = |text: &str| text.contains("pytest");
    let file = files.first_with(&DEPENDENCY_FILES, lists_pytest)?;
    Some(format!("pytest in {file}"))
}

/// Returns the runner of test files in a project that does not mention pytest. `unittest` is part of
/// Python, so its tests need nothing that may be missing.
fn test_files(files: &ProjectFiles) -> Option<TestCommand> {
    let test_files: Vec<&str> = files.names().filter(|name| is_test_file(name)).collect();
    let first = test_files.first()?;
    let is_mentioned = |module| {
        test_files
            .iter()
            .any(|name| files.text(name).contains(module))
    };
    if !is_mentioned("import unittest") && !is_mentioned("from unittest")
        || is_mentioned("pytest")
        || test_files.iter().any(|name| name.ends_with("conftest.py"))
    {
        return Some(pytest(files, (*first).to_owned()));
    }
    let command = match first.rsplit_once('/') {
        Some((directory, _)) => format!("python3 -m unittest discover -s {directory}"),
        None => "python3 -m unittest".to_owned(),
    };
    Some(TestCommand::new(command, format!("unittest in {first}")))
}

pub(super) fn is_test_file(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or_default();
    let is_test = file.starts_with("test_") || file.ends_with("_test.py");
    file == "conftest.py" || (is_test && name.strip_suffix(".py").is_some())
}

fn other_runners(files: &ProjectFiles) -> Vec<TestCommand> {
    let has_environments = |text: &str| {
        let mut lines = text.lines().map(str::trim);
        lines.any(|line| {
            line == "[tox]" || line.starts_with("[testenv") || line.starts_with("[tool.tox")
        })
    };
    let mut commands = Vec::new();
    if files.has_any(&["manage.py"]) {
        commands.push(TestCommand::new("python3 manage.py test", "manage.py"));
    }
    if let Some(file) = files.first_with(&["tox.ini", "pyproject.toml"], has_environments) {
        commands.push(TestCommand::new("tox", file));
    }
    if files.has_any(&["noxfile.py"]) {
        commands.push(TestCommand::new("nox", "noxfile.py"));
    }
    commands
}
