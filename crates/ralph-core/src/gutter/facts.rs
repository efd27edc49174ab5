//! What one iteration leaves for the question whether the run goes in circles. Every list has a
//! bound.

use serde::{Deserialize, Serialize};

use super::code::CodeChange;
use super::problems::OutputProblems;
use crate::id::Digest;
use crate::verdict::TestCount;

/// The facts of one iteration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IterationFacts {
    /// Its number.
    pub iteration: u32,
    /// Commands of the model that ran.
    pub commands: u32,
    /// Lines added and removed since its start, committed or not, the run's own files left out.
    pub changed_lines: u64,
    /// Files without lines, such as images, that changed.
    pub binary_files: u64,
    /// Files that changed, with what they became; the first of them where there are many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileState>,
    /// What failed, each failure once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureFacts>,
    /// The last run of the test command, if it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestFacts>,
    /// Boxes that were ticked at its end.
    pub boxes_ticked: usize,
    /// Git's name of all files at its end; empty where it could not be found out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tree: String,
    /// Whether a commit of it was kept; none where an older version wrote the facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub committed: Option<bool>,
    /// Lines added and removed between the commit at its start and the files at its end.
    #[serde(default)]
    pub diff_lines: u64,
    /// The code that it wrote, if it changed anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<CodeChange>,
}

impl IterationFacts {
    /// How many changed files are kept.
    pub const MAX_FILES: usize = 64;
    /// How many failures are kept.
    pub const MAX_FAILURES: usize = 16;

    /// Returns whether any file of the repository changed.
    pub fn has_changes(&self) -> bool {
        self.changed_lines > 0 || self.binary_files > 0 || !self.files.is_empty()
    }

    /// Returns whether nothing was run and nothing changed.
    pub fn is_idle(&self) -> bool {
        self.commands == 0 && !self.has_changes()
    }

    /// Keeps a failure, unless the same one is known already.
    pub fn add_failure(failures: &mut Vec<FailureFacts>, failure: FailureFacts) {
        let is_known = failures
            .iter()
            .any(|known| known.signature == failure.signature);
        if !is_known && failures.len() < Self::MAX_FAILURES {
            failures.push(failure);
        }
    }
}

/// What a changed file became.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// Where it is.
    pub path: String,
    /// Git's name of its content; none for a file that is gone.
    pub after: Option<String>,
}

/// Something that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureFacts {
    /// What the failure looks like, see [`signature`](super::signature).
    pub signature: Digest,
    /// The command, or the action that is none.
    pub command: String,
    /// How it ended.
    pub ended: String,
    /// The problems that it reported, if they could be recognised.
    #[serde(default, skip_serializing_if = "OutputProblems::is_empty")]
    pub problems: OutputProblems,
}

impl FailureFacts {
    /// How long the texts of a failure may be, in characters.
    const MAX_CHARS: usize = 200;

    /// Notes a failure. The texts are for people and are cut, the signature tells.
    pub fn new(signature: Digest, command: &str, ended: &str) -> Self {
        Self {
            signature,
            command: truncate_chars(command),
            ended: truncate_chars(ended),
            problems: OutputProblems::default(),
        }
    }

    /// Adds the problems that it reported.
    #[must_use]
    pub fn with_problems(self, problems: OutputProblems) -> Self {
        Self { problems, ..self }
    }

    /// Notes an action that could not be done, by its own words.
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

/// How the test command went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestFacts {
    /// Whether it was green.
    pub green: bool,
    /// Its tests, if they could be counted.
    pub count: Option<TestCount>,
}
