//! The names and contents of a project's files, as values.

use std::collections::{BTreeMap, BTreeSet};

use super::python::is_test_file;

/// The files whose contents the detection needs.
pub const READ_FILES: [&str; 24] = [
    "package.json",
    "deno.json",
    "deno.jsonc",
    "pyproject.toml",
    "setup.cfg",
    "tox.ini",
    "requirements.txt",
    "requirements-dev.txt",
    "Pipfile",
    "Cargo.toml",
    "Gemfile",
    "Rakefile",
    "composer.json",
    "pubspec.yaml",
    "build.zig",
    "GNUmakefile",
    "makefile",
    "Makefile",
    "justfile",
    "Justfile",
    "Taskfile.yml",
    "Taskfile.yaml",
    "CMakeLists.txt",
    "meson.build",
];

/// The directories whose entries the detection needs, besides those of the project itself.
pub const LISTED_DIRECTORIES: [&str; 4] = ["tests", "test", "spec", "bin"];

/// The most Python tests that are read.
const MAX_PYTHON_TESTS: usize = 20;

/// The files of a project. Names are relative to its root, with `/` between their parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectFiles {
    names: BTreeSet<String>,
    texts: BTreeMap<String, String>,
}

impl ProjectFiles {
    /// Adds a file or directory by name.
    pub fn add_name(&mut self, name: impl Into<String>) {
        self.names.insert(name.into());
    }

    /// Adds a file with its content.
    pub fn add_text(&mut self, name: impl Into<String>, text: impl Into<String>) {
        let name = name.into();
        self.names.insert(name.clone());
        self.texts.insert(name, text.into());
    }

    /// Returns the names of the Python tests, whose content shows their framework; at most 20.
    pub fn python_tests(&self) -> Vec<String> {
        let tests = self.names().filter(|name| is_test_file(name));
        tests.take(MAX_PYTHON_TESTS).map(str::to_owned).collect()
    }

    /// Returns whether one of these files or directories exists.
    pub(super) fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.names.contains(*name))
    }

    /// Returns whether a name ends with one of these suffixes.
    pub(super) fn has_suffix(&self, suffixes: &[&str]) -> bool {
        let mut names = self.names.iter();
        names.any(|name| suffixes.iter().any(|suffix| name.ends_with(suffix)))
    }

    /// Returns the names in the project and in its listed directories.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Returns the content of a file; empty if it is missing or was not read.
    pub(super) fn text(&self, name: &str) -> &str {
        self.texts.get(name).map_or("", String::as_str)
    }

    /// Returns the first of these files whose content satisfies a condition.
    pub(super) fn first_with<'n>(
        &self,
        names: &[&'n str],
        condition: impl Fn(&str) -> bool,
    ) -> Option<&'n str> {
        let mut names = names.iter().copied();
        names.find(|name| self.texts.get(*name).is_some_and(|text| condition(text)))
    }
}
