//! What a prompt is made of.

use crate::budget::{BudgetLimits, Spent};
use crate::ports::ExecStatus;

/// Everything that one iteration is told. Texts may be of any size; the prompt caps them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PromptSnapshot {
    /// The whole of `ralph_task.md`, with its front matter.
    pub task: String,
    /// The boxes that are open, if one of them has no id in the file: number, id and text of each.
    pub open_boxes: Vec<String>,
    /// The whole of `.ralph/guardrails.md`.
    pub guardrails: String,
    /// The whole of `.ralph/progress.md`.
    pub progress: String,
    /// The whole of `.ralph/notes.md`, if there is one.
    pub notes: Option<String>,
    /// The end of `.ralph/errors.log`.
    pub errors_tail: String,
    /// Where the repository stands.
    pub git: GitSummary,
    /// The last run of the test command, if it ran.
    pub last_output: Option<LastOutput>,
    /// The checks that were green before any work.
    pub already_green: Vec<String>,
    /// Why the last `stop_success` was refused, one reason each.
    pub refusals: Vec<String>,
    /// What the run may spend.
    pub limits: BudgetLimits,
    /// What it has spent.
    pub spent: Spent,
    /// The number of the iteration that this prompt starts; the first is 1.
    pub iteration: u32,
    /// The loop scores of earlier iterations, oldest first.
    pub loop_scores: Vec<f64>,
    /// Why the last iteration looked like going in circles; empty if it did not.
    pub circling: Vec<String>,
    /// Messages of people, oldest first.
    pub messages: Vec<String>,
    /// The schema of the actions with examples and constraints.
    pub schema: String,
}

/// Where the repository stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitSummary {
    /// The run's branch.
    pub branch: String,
    /// Its commit, shortened.
    pub head: String,
    /// Lines of `git status --porcelain`, perhaps only the first.
    pub status: Vec<String>,
    /// How many lines it has in all.
    pub status_total: usize,
    /// What `git diff --stat` prints.
    pub diff_stat: String,
    /// The last commits, newest first, one line each.
    pub last_commits: Vec<String>,
    /// The file that has the last iteration's full diff; empty if there is none yet.
    pub diff_file: String,
}

/// What the commands of the last iteration printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastOutput {
    /// The last run of the test command, if there was one.
    pub tests: Option<LastTests>,
    /// The end of what the commands of the last iteration printed.
    pub output_tail: String,
    /// The file that has all of it, such as `.ralph/iterations/7/test_output.txt`.
    pub file: String,
}

/// A run of the test command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastTests {
    /// What ran.
    pub command: String,
    /// How it ended.
    pub ended: ExecStatus,
}
