//! The input of a prompt.

use crate::budget::{BudgetLimits, Spent};
use crate::ports::ExecStatus;

/// The input of one iteration's prompt. Values may be of any size; the prompt caps them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PromptSnapshot {
    /// All of `ralph_task.md`, including its front matter.
    pub task: String,
    /// Number, id and text of each open box; empty if the file contains the ids of all of them.
    pub open_boxes: Vec<String>,
    /// All of `.ralph/guardrails.md`.
    pub guardrails: String,
    /// All of `.ralph/progress.md`.
    pub progress: String,
    /// All of `.ralph/notes.md`.
    pub notes: Option<String>,
    /// The end of `.ralph/errors.log`.
    pub errors_tail: String,
    pub git: GitSummary,
    pub last_output: Option<LastOutput>,
    /// The checks that passed before any work.
    pub already_green: Vec<String>,
    /// Why the last `stop_success` was rejected, one reason per entry.
    pub refusals: Vec<String>,
    pub limits: BudgetLimits,
    pub spent: Spent,
    /// The number of the iteration that this prompt starts, from 1.
    pub iteration: u32,
    /// Loop scores of earlier iterations, oldest first.
    pub loop_scores: Vec<f64>,
    /// Evidence that the last iteration was circling; empty if it was not.
    pub circling: Vec<String>,
    /// Messages from the user, oldest first.
    pub messages: Vec<String>,
    /// Schema of the actions, with examples and constraints.
    pub schema: String,
}

/// The state of the repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitSummary {
    /// The run's branch.
    pub branch: String,
    /// Abbreviated commit id.
    pub head: String,
    /// Lines of `git status --porcelain`, possibly only the first ones.
    pub status: Vec<String>,
    /// Number of status lines, including omitted ones.
    pub status_total: usize,
    /// Output of `git diff --stat`.
    pub diff_stat: String,
    /// Newest first, one line each.
    pub last_commits: Vec<String>,
    /// The file with the last iteration's full diff; empty if there is none yet.
    pub diff_file: String,
}

/// Output of the last iteration's commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastOutput {
    /// The last run of the test command.
    pub tests: Option<LastTests>,
    /// The end of the output of all commands.
    pub output_tail: String,
    /// The file with the full output, such as `.ralph/iterations/7/test_output.txt`.
    pub file: String,
}

/// A run of the test command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastTests {
    pub command: String,
    pub ended: ExecStatus,
}
