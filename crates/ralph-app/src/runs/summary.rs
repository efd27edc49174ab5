//! A run in a few fields: the JSON of `show` and of each entry of `runs`. Its keys never change.

use ralph_core::id::RunId;
use ralph_core::plan::EngineKind;
use ralph_core::ports::PullState;
use ralph_core::state::RunState;
use ralph_engine::journal::{JournalError, RunOutline};
use ralph_engine::store::RunDir;
use serde::Serialize;

/// The status of a run whose process is gone in the middle of its work.
pub const INTERRUPTED: &str = "interrupted";
/// The status of a run whose journal cannot be read.
pub const DAMAGED: &str = "damaged";
/// The status of a run that a newer ralph wrote.
pub const NEEDS_UPGRADE: &str = "needs_upgrade";

/// A run in a few fields.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunSummary {
    /// Its id.
    pub id: RunId,
    /// Its task; none only if the journal's first record cannot be read.
    pub task_id: Option<String>,
    /// Where it stands, in one word.
    pub status: &'static str,
    /// Why it stands there, if there is more to say.
    pub reason: Option<String>,
    /// Who does the work.
    pub engine: Option<EngineKind>,
    /// The sandbox provider.
    pub sandbox: Option<String>,
    /// The last iteration that was started.
    pub iteration: u32,
    /// How much the last iteration looked like going in circles.
    pub loop_score: Option<f64>,
    /// What the model calls have cost.
    pub cost_usd: f64,
    /// What they have used.
    pub tokens: TokenTotals,
    /// The branch that is delivered.
    pub branch: Option<String>,
    /// The last commit the host has.
    pub head: Option<String>,
    /// The pull request.
    pub pr: Option<PullRequestSummary>,
    /// When it was created.
    pub started_at: Option<jiff::Timestamp>,
    /// When something was last recorded.
    pub updated_at: Option<jiff::Timestamp>,
}

/// Tokens of all model calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TokenTotals {
    /// Those of the prompts.
    pub input: u64,
    /// Those of the answers.
    pub output: u64,
}

/// A pull request in three fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PullRequestSummary {
    /// Its number.
    pub number: u64,
    /// Where to look at it.
    pub url: String,
    /// Whether it is a draft.
    pub state: PullState,
}

impl RunSummary {
    /// Sums up a run from its state, seeing whether its process is still there.
    pub fn from_state(dir: &RunDir, state: &RunState) -> Self {
        let plan = &state.plan;
        let (status, reason) = if dir.is_interrupted(&state.status) {
            (INTERRUPTED, Some(interrupted_hint(&plan.run)))
        } else {
            (state.status.as_str(), state.reason())
        };
        Self {
            id: plan.run.clone(),
            task_id: Some(plan.task_id.to_string()),
            status,
            reason,
            engine: Some(plan.engine),
            sandbox: Some(plan.sandbox.clone()),
            iteration: state.iteration,
            loop_score: state.loop_scores.last().copied(),
            cost_usd: state.cost.dollars(),
            tokens: TokenTotals {
                input: state.usage.input_tokens,
                output: state.usage.output_tokens,
            },
            branch: Some(plan.branch.clone()),
            head: Some(state.head.to_string()),
            pr: state.pull.as_ref().map(|pull| PullRequestSummary {
                number: pull.number,
                url: pull.url.clone(),
                state: pull.state,
            }),
            started_at: Some(state.started_at),
            updated_at: Some(state.updated_at),
        }
    }

    /// Sums up a run. A journal that cannot be read gives the run a status of its own instead of hiding
    /// the others.
    pub fn read(id: &RunId, dir: &RunDir) -> Self {
        let error = match dir.state() {
            Ok(state) => return Self::from_state(dir, &state),
            Err(error) => error,
        };
        let (status, reason) = match &error {
            JournalError::Newer { .. } | JournalError::Unknown { .. } => {
                (NEEDS_UPGRADE, format!("{error} — upgrade ralph"))
            }
            JournalError::Store(_)
            | JournalError::Empty { .. }
            | JournalError::Damaged { .. }
            | JournalError::Held { .. }
            | JournalError::Lost { .. } => (DAMAGED, error.to_string()),
        };
        let outline = RunOutline::read(&dir.journal());
        Self {
            id: id.clone(),
            task_id: outline.task_id,
            status,
            reason: Some(reason),
            engine: outline.engine,
            sandbox: outline.sandbox,
            iteration: 0,
            loop_score: None,
            cost_usd: 0.0,
            tokens: TokenTotals::default(),
            branch: outline.branch,
            head: None,
            pr: None,
            started_at: None,
            updated_at: None,
        }
    }
}

/// Says what an interrupted run needs.
pub fn interrupted_hint(run: &RunId) -> String {
    format!("the process that worked on it is gone — `ralph resume {run}` continues it")
}
