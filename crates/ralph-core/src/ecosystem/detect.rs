//! Combines the detectors of all ecosystems.

use super::dependencies::propose_setup_command;
use super::project_files::ProjectFiles;
use super::{build_tools, javascript, languages, python};

/// A command that runs the tests of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestCommand {
    /// For `sh -c` in the root of the project.
    pub command: String,
    /// Where the command comes from, such as `scripts.test in package.json`.
    pub origin: String,
}

impl TestCommand {
    pub(super) fn new(command: impl Into<String>, origin: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            origin: origin.into(),
        }
    }
}

/// The languages and test commands of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DetectedProject {
    /// Without duplicates.
    pub languages: Vec<&'static str>,
    /// The preferred one first. A language's own runner precedes general build tools.
    pub test_commands: Vec<TestCommand>,
    /// Installs the locked dependencies.
    pub setup_command: Option<String>,
}

impl DetectedProject {
    /// Adds a language and its test commands.
    pub(super) fn add(
        &mut self,
        language: &'static str,
        commands: impl IntoIterator<Item = TestCommand>,
    ) {
        if !self.languages.contains(&language) {
            self.languages.push(language);
        }
        self.add_commands(commands);
    }

    /// Adds test commands that say nothing about the language.
    pub(super) fn add_commands(&mut self, commands: impl IntoIterator<Item = TestCommand>) {
        for command in commands {
            let mut known = self.test_commands.iter();
            if !known.any(|known| known.command == command.command) {
                self.test_commands.push(command);
            }
        }
    }
}

/// Finds the languages and test commands of a project.
pub fn detect_project(files: &ProjectFiles) -> DetectedProject {
    let mut project = DetectedProject::default();
    languages::detect_rust_and_go(files, &mut project);
    javascript::detect(files, &mut project);
    python::detect(files, &mut project);
    languages::detect_others(files, &mut project);
    build_tools::detect(files, &mut project);
    project.setup_command = propose_setup_command(files);
    project
}
