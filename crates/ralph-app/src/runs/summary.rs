//! A summary of a run: the JSON of `show` and of each entry of `runs`. Its keys never change.

use ralph_core::id::RunId;
use ralph_core::plan::EngineKind;
use ralph_core::ports::PullState;
use ralph_core::state::RunState;
use ralph_engine::journal::{JournalError, RunOutline};
use ralph_engine::store::RunDir;
use serde::Serialize;
use utoipa::ToSchema;

use crate::server::ServerQueue;

/// The status of a run whose process died during its work.
pub const INTERRUPTED: &str = "interrupted";
/// The status of a run that continues as soon as the server has a free worker.
pub const QUEUED: &str = "queued";
/// The status of a run whose journal cannot be read.
pub const DAMAGED: &str = "damaged";
/// The status of a run that a newer ralph wrote.
pub const NEEDS_UPGRADE: &str = "needs_upgrade";

/// A summary of a run.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RunSummary {
    #[schema(value_type = String)]
    pub id: RunId,
    /// The task; `None` only if the journal's first record cannot be read.
    pub task_id: Option<String>,
    /// The status in one word.
    #[schema(value_type = String)]
    pub status: &'static str,
    /// The reason for the status, if there is one.
    pub reason: Option<String>,
    #[schema(value_type = Option<String>)]
    pub engine: Option<EngineKind>,
    pub sandbox: Option<String>,
    /// The last iteration that was started.
    pub iteration: u32,
    /// The circling score of the last iteration.
    pub loop_score: Option<f64>,
    /// The cost of the model calls.
    pub cost_usd: f64,
    pub tokens: TokenTotals,
    /// The branch that is delivered.
    pub branch: Option<String>,
    /// The last commit on the host.
    pub head: Option<String>,
    pub pr: Option<PullRequestSummary>,
    /// The time of creation.
    pub started_at: Option<jiff::Timestamp>,
    /// The time of the last record.
    pub updated_at: Option<jiff::Timestamp>,
    /// How a run whose directory was lost was rebuilt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The position in the queue of the running server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_position: Option<usize>,
}

/// The tokens of all model calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct TokenTotals {
    /// The tokens of the prompts.
    pub input: u64,
    /// The tokens of the responses.
    pub output: u64,
}

/// A summary of a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PullRequestSummary {
    pub number: u64,
    pub url: String,
    #[schema(value_type = String)]
    pub state: PullState,
}

impl RunSummary {
    /// Summarizes a run from its state, and checks whether its process is alive.
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
            origin: state.adoption.as_ref().map(ToString::to_string),
            queue_position: None,
        }
    }

    /// Adds the place of the run in the queue of the running server, if it has one.
    #[must_use]
    pub fn in_queue(mut self, queue: &ServerQueue) -> Self {
        let Some(position) = queue.position(&self.id) else {
            return self;
        };
        // No process works on it, but the user has nothing to do.
        if self.status == INTERRUPTED {
            self.status = QUEUED;
        }
        self.reason = Some(format!(
            "waits for a worker of the server, position {position}"
        ));
        self.queue_position = Some(position);
        self
    }

    /// Summarizes a run. A run with an unreadable journal gets a special status instead of hiding
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
            origin: None,
            queue_position: None,
        }
    }
}

/// Returns the hint for an interrupted run.
pub fn interrupted_hint(run: &RunId) -> String {
    format!("the process that worked on it is gone — `ralph resume {run}` continues it")
}
