//! The facts about an iteration from which circling is measured. Every list is bounded.

use serde::{Deserialize, Serialize};

use super::code::CodeChange;
use super::problems::OutputProblems;
use crate::id::Digest;
use crate::verdict::TestCount;

/// The facts about one iteration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IterationFacts {
    pub iteration: u32,
    /// Number of the model's commands that ran.
    pub commands: u32,
    /// Lines added and removed during the iteration, committed or not, without the run's own files.
    pub changed_lines: u64,
    /// Number of changed binary files.
    pub binary_files: u64,
    /// The first [`Self::MAX_FILES`] changed files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileState>,
    /// Without duplicates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureFacts>,
    /// The last run of the test command, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestFacts>,
    /// Number of ticked boxes at the end of the iteration.
    pub boxes_ticked: usize,
    /// The git tree id at the end of the iteration; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tree: String,
    /// Whether a commit of the iteration was accepted; `None` in facts of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub committed: Option<bool>,
    /// Lines added and removed between the commit at the start and the files at the end.
    #[serde(default)]
    pub diff_lines: u64,
    /// `None` if the iteration changed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<CodeChange>,
}

impl IterationFacts {
    /// The most changed files that are recorded.
    pub const MAX_FILES: usize = 64;
    /// The most failures that are recorded.
    pub const MAX_FAILURES: usize = 16;

    /// Returns whether any file of the repository changed.
    pub fn has_changes(&self) -> bool {
        self.changed_lines > 0 || self.binary_files > 0 || !self.files.is_empty()
    }

    /// Returns whether no command ran and nothing changed.
    pub fn is_idle(&self) -> bool {
        self.commands == 0 && !self.has_changes()
    }

    /// Adds a failure unless it is already recorded or the list is full.
    pub fn add_failure(failures: &mut Vec<FailureFacts>, failure: FailureFacts) {
        let is_known = failures
            .iter()
            .any(|known| known.signature == failure.signature);
        if !is_known && failures.len() < Self::MAX_FAILURES {
            failures.push(failure);
        }
    }
}

/// The state of a changed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    pub path: String,
    /// The git object id of the content; `None` for a deleted file.
    pub after: Option<String>,
}

/// A failed command or action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureFacts {
    /// Identifies the failure, see [`signature`](super::signature).
    pub signature: Digest,
    /// The command, or a description of the action.
    pub command: String,
    /// The outcome, such as `exit 1`.
    pub ended: String,
    /// The recognised problems in the output.
    #[serde(default, skip_serializing_if = "OutputProblems::is_empty")]
    pub problems: OutputProblems,
}

impl FailureFacts {
    /// The length to which texts are truncated, in characters.
    const MAX_CHARS: usize = 200;

    /// Creates a failure. The texts are only for display and are truncated; the signature
    /// identifies the failure.
    pub fn new(signature: Digest, command: &str, ended: &str) -> Self {
        Self {
            signature,
            command: truncate_chars(command),
            ended: truncate_chars(ended),
            problems: OutputProblems::default(),
        }
    }

    /// Sets the problems found in the output.
    #[must_use]
    pub fn with_problems(self, problems: OutputProblems) -> Self {
        Self { problems, ..self }
    }

    /// Creates the failure of an action that could not be performed.
    pub fn for_action(action: &str, label: &str, why: &str) -> Self {
        let name = if label.starts_with(action) {
            label.to_owned()
        } else {
            format!("{action} {label}")
        };
        Self::new(super::signature(&name, 1, why, ""), &name, why)
    }
}

fn truncate_chars(text: &str) -> String {
    let mut chars = text.chars();
    let mut kept: String = chars.by_ref().take(FailureFacts::MAX_CHARS).collect();
    if chars.next().is_some() {
        kept.push('…');
    }
    kept
}

/// The result of the test command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestFacts {
    pub green: bool,
    /// `None` if the tests could not be counted.
    pub count: Option<TestCount>,
}
