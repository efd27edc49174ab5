//! The actions of a run with their outcomes, in order: those of a model, and the tools of an agent.

use std::collections::BTreeMap;

use ralph_core::event::{ActionResult, AgentSessionEvent, Event, IterationEvent, JournalRecord};
use ralph_core::ports::AgentEvent;
use ralph_engine::journal;
use ralph_engine::store::RunDir;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::AppError;

/// An action of a model, or a call of a tool by an agent.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct TimelineAction {
    /// The number of its first record in the journal.
    pub seq: u64,
    pub iteration: u32,
    /// The position in the model's reply, from 0; `None` for a tool of an agent.
    pub index: Option<usize>,
    /// The kind of the action, such as `run`, or the name of the tool.
    pub action: String,
    /// The command or path.
    pub label: String,
    pub started_at: jiff::Timestamp,
    /// `None` while it runs, and for a tool whose end the agent did not report.
    pub duration_ms: Option<u64>,
    pub state: ActionState,
    /// The full result of a model's action.
    pub result: Option<ActionResult>,
    /// The last lines of its output.
    pub tail: String,
}

/// The state of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActionState {
    /// It has started; its end is not recorded.
    Running,
    Succeeded,
    /// It failed, was refused, skipped or interrupted.
    Failed,
}

/// Which part of the actions to return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimelineRange {
    /// Only those of this iteration.
    pub iteration: Option<u32>,
    /// Only those that started after this record.
    pub after: u64,
    pub limit: usize,
}

/// A part of the actions of a run.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Timeline {
    /// Oldest first.
    pub actions: Vec<TimelineAction>,
    /// The `after` of the next part; `None` at the end.
    pub next: Option<u64>,
}

/// Returns a part of the actions of a run.
pub fn timeline(dir: &RunDir, range: TimelineRange) -> Result<Timeline, AppError> {
    let mut fold = TimelineFold::default();
    for record in &journal::read(&dir.journal())? {
        fold.add(record);
    }
    let is_wanted = |action: &TimelineAction| {
        action.seq > range.after
            && range
                .iteration
                .is_none_or(|number| number == action.iteration)
    };
    let mut actions: Vec<TimelineAction> = fold.actions.into_iter().filter(is_wanted).collect();
    let is_cut = actions.len() > range.limit;
    actions.truncate(range.limit);
    let next = actions.last().filter(|_| is_cut).map(|last| last.seq);
    Ok(Timeline { actions, next })
}

/// The actions so far, and those whose end is expected.
#[derive(Default)]
struct TimelineFold {
    actions: Vec<TimelineAction>,
    open_tools: BTreeMap<String, usize>,
}

impl TimelineFold {
    fn add(&mut self, record: &JournalRecord) {
        match &record.event {
            Event::Iteration(event) => self.add_iteration(record, event),
            Event::Agent(AgentSessionEvent::AgentDid { iteration, did }) => {
                self.add_tool(record, *iteration, did);
            }
            Event::Agent(_)
            | Event::Run(_)
            | Event::Command(_)
            | Event::Sandbox(_)
            | Event::Model(_)
            | Event::Egress(_)
            | Event::Verification(_)
            | Event::Delivery(_)
            | Event::Doctor(_) => {}
        }
    }

    fn add_iteration(&mut self, record: &JournalRecord, event: &IterationEvent) {
        match event {
            IterationEvent::ActionStarted {
                iteration,
                index,
                action,
                label,
                ..
            } => {
                // An action that is performed again after a crash replaces its first attempt.
                self.actions.retain(|known| {
                    (known.iteration, known.index) != (*iteration, Some(*index))
                        || known.state != ActionState::Running
                });
                self.start(record, *iteration, Some(*index), (action, label));
            }
            IterationEvent::ActionFinished {
                iteration,
                index,
                action,
                label,
                result,
                duration_ms,
                tail,
            } => {
                let is_same = |known: &TimelineAction| {
                    (known.iteration, known.index) == (*iteration, Some(*index))
                };
                if !self.actions.iter().any(is_same) {
                    // An action that was refused or skipped was never started.
                    self.start(record, *iteration, Some(*index), (action, label));
                }
                if let Some(known) = self.actions.iter_mut().rev().find(|known| is_same(known)) {
                    known.finish(result, *duration_ms, tail);
                }
            }
            IterationEvent::IterationStarted { .. }
            | IterationEvent::ClaimChecked { .. }
            | IterationEvent::BoxesTicked { .. }
            | IterationEvent::TestsRun { .. }
            | IterationEvent::IterationFinished { .. }
            | IterationEvent::Gutter { .. } => {}
        }
    }

    fn add_tool(&mut self, record: &JournalRecord, iteration: u32, did: &AgentEvent) {
        match did {
            AgentEvent::Tool { id, tool, label } => {
                self.open_tools.insert(id.clone(), self.actions.len());
                self.start(record, iteration, None, (tool, label));
            }
            AgentEvent::ToolDone { id, ok } => {
                let position = self.open_tools.remove(id);
                if let Some(tool) = position.and_then(|at| self.actions.get_mut(at)) {
                    let took = record.at.duration_since(tool.started_at).as_millis();
                    tool.duration_ms = Some(u64::try_from(took).unwrap_or(0));
                    tool.state = if *ok {
                        ActionState::Succeeded
                    } else {
                        ActionState::Failed
                    };
                }
            }
            AgentEvent::Started { .. }
            | AgentEvent::Text { .. }
            | AgentEvent::Usage { .. }
            | AgentEvent::Waiting { .. }
            | AgentEvent::Acknowledged { .. } => {}
        }
    }

    fn start(
        &mut self,
        record: &JournalRecord,
        iteration: u32,
        index: Option<usize>,
        (action, label): (&str, &str),
    ) {
        self.actions.push(TimelineAction {
            seq: record.seq,
            iteration,
            index,
            action: action.to_owned(),
            label: label.to_owned(),
            started_at: record.at,
            duration_ms: None,
            state: ActionState::Running,
            result: None,
            tail: String::new(),
        });
    }
}

impl TimelineAction {
    fn finish(&mut self, result: &ActionResult, duration_ms: u64, tail: &str) {
        self.state = if result.is_success() {
            ActionState::Succeeded
        } else {
            ActionState::Failed
        };
        self.duration_ms = Some(duration_ms);
        self.result = Some(result.clone());
        tail.clone_into(&mut self.tail);
    }
}
