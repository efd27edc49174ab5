//! The actions of a model and its checked reply.

use std::time::Duration;

use crate::path::WorkspacePath;
use crate::ports::WriteMode;
use crate::secret::Redactor;

use super::text::one_line;

/// The longest label of an action, in characters.
const MAX_LABEL_CHARS: usize = 120;

/// One action that a model requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Runs a shell command in the sandbox.
    Run {
        /// Shell command line.
        command: String,
        /// Working directory; `None` is the repository root.
        cwd: Option<WorkspacePath>,
        timeout: Duration,
    },
    /// Applies a unified diff to one file.
    Patch {
        /// May be a new file.
        path: WorkspacePath,
        patch: String,
    },
    /// Writes a file.
    Write {
        /// May be a new file.
        path: WorkspacePath,
        content: String,
        mode: WriteMode,
    },
    /// Commits changes.
    Commit {
        /// The model's original text; pass it through [`clean_message`](super::clean_message)
        /// before committing.
        message: String,
        /// Empty means all changes.
        paths: Vec<WorkspacePath>,
    },
    /// Ends the iteration; the next one starts fresh.
    Rotate { reason: String },
    /// Pauses the run for the user.
    Pause {
        /// The decision that the user has to make.
        reason: String,
    },
    /// Declares the task done; the runner verifies it.
    StopSuccess { reason: String },
    /// Gives up the task.
    StopFailure { reason: String },
}

impl Action {
    /// Returns the `type` of the action in a reply.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Run { .. } => "run",
            Self::Patch { .. } => "patch",
            Self::Write { .. } => "write",
            Self::Commit { .. } => "commit",
            Self::Rotate { .. } => "rotate",
            Self::Pause { .. } => "pause",
            Self::StopSuccess { .. } => "stop_success",
            Self::StopFailure { .. } => "stop_failure",
        }
    }

    /// Returns whether the action can change files in the sandbox.
    pub fn changes_files(&self) -> bool {
        match self {
            Self::Run { .. } | Self::Patch { .. } | Self::Write { .. } | Self::Commit { .. } => {
                true
            }
            Self::Rotate { .. }
            | Self::Pause { .. }
            | Self::StopSuccess { .. }
            | Self::StopFailure { .. } => false,
        }
    }

    /// Returns a short line for display that is safe to print on a terminal.
    ///
    /// The text is redacted before it is truncated, because half a secret would not be recognised.
    pub fn label(&self, redactor: &Redactor) -> String {
        let text = match self {
            Self::Run { command, .. } => command,
            Self::Patch { path, .. } | Self::Write { path, .. } => path.as_str(),
            Self::Commit { message, .. } => message,
            Self::Rotate { reason }
            | Self::Pause { reason }
            | Self::StopSuccess { reason }
            | Self::StopFailure { reason } => reason,
        };
        one_line(&redactor.redact(text), MAX_LABEL_CHARS)
    }

    /// Returns whether the action ends its iteration.
    pub fn is_control(&self) -> bool {
        match self {
            Self::Run { .. } | Self::Patch { .. } | Self::Write { .. } | Self::Commit { .. } => {
                false
            }
            Self::Rotate { .. }
            | Self::Pause { .. }
            | Self::StopSuccess { .. }
            | Self::StopFailure { .. } => true,
        }
    }
}

/// The model's claims about completed work. The runner verifies each of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claims {
    /// Checkbox ids, such as `M1.1`, or numbers or texts of checkboxes; not yet resolved.
    pub checkboxes_checked: Vec<String>,
    /// Milestone ids, such as `M1`.
    pub milestones_completed: Vec<String>,
}

/// A valid reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The model's description of the iteration, for display.
    pub summary: String,
    /// All actions in order; see [`Response::executable`].
    pub actions: Vec<Action>,
    pub claims: Claims,
    /// Whether the reply was anything other than one strict JSON object.
    pub repaired: bool,
}

impl Response {
    /// Returns the actions to execute: up to and including the first that ends the iteration.
    pub fn executable(&self) -> &[Action] {
        &self.actions[..self.executable_count()]
    }

    /// Returns the actions after the one that ends the iteration; they are recorded as skipped.
    pub fn skipped(&self) -> &[Action] {
        &self.actions[self.executable_count()..]
    }

    fn executable_count(&self) -> usize {
        self.actions
            .iter()
            .position(Action::is_control)
            .map_or(self.actions.len(), |index| index + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Action> {
        let path = WorkspacePath::parse("src/a.rs").unwrap();
        vec![
            Action::Run {
                command: "cargo test\necho done".into(),
                cwd: None,
                timeout: Duration::from_secs(1),
            },
            Action::Patch {
                path: path.clone(),
                patch: "@@".into(),
            },
            Action::Write {
                path: path.clone(),
                content: "x".into(),
                mode: WriteMode::Append,
            },
            Action::Commit {
                message: "Title\n\nbody".into(),
                paths: vec![path],
            },
            Action::Rotate {
                reason: "fresh \u{1b}[31mpass".into(),
            },
            Action::Pause {
                reason: "x".repeat(200),
            },
            Action::StopSuccess {
                reason: "green".into(),
            },
            Action::StopFailure {
                reason: String::new(),
            },
        ]
    }

    #[test]
    fn each_action_has_a_kind_a_label_and_a_role() {
        let cut = format!("{}…", "x".repeat(119));
        let found: Vec<_> = all()
            .iter()
            .map(|action| {
                (
                    action.kind(),
                    action.label(&Redactor::default()),
                    action.is_control(),
                )
            })
            .collect();
        let expected = [
            ("run", "cargo test…", false),
            ("patch", "src/a.rs", false),
            ("write", "src/a.rs", false),
            ("commit", "Title…", false),
            ("rotate", "fresh �[31mpass", true),
            ("pause", cut.as_str(), true),
            ("stop_success", "green", true),
            ("stop_failure", "", true),
        ]
        .map(|(kind, label, control)| (kind, label.to_owned(), control));
        assert_eq!(found, expected);
    }

    #[test]
    fn the_first_control_action_ends_the_iteration() {
        let actions = all();
        let response = |actions: &[Action]| Response {
            summary: String::new(),
            actions: actions.to_vec(),
            claims: Claims::default(),
            repaired: false,
        };
        for (given, executed) in [(0, 0), (4, 4), (5, 5), (6, 5), (8, 5)] {
            let response = response(&actions[..given]);
            assert_eq!(response.executable(), &actions[..executed]);
            assert_eq!(response.skipped(), &actions[executed..given]);
        }
        let stop_first = response(&actions[6..]);
        assert_eq!(stop_first.executable(), &actions[6..7]);
    }
}
