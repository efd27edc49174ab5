//! The iteration in progress: everything that a restart needs to continue it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::event::{ActionResult, AgentSessionEvent, IterationEvent, ModelEvent};
use crate::gutter::{FailureFacts, IterationFacts};
use crate::id::{CommitId, Digest};
use crate::money::Usd;
use crate::ports::{AgentEnd, AgentEvent, TokenUsage};
use crate::verdict::CheckResult;

/// The most tool calls in progress that are remembered.
const MAX_RUNNING_TOOLS: usize = 100;

/// A tool call of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningTool {
    /// Identifies the call.
    pub id: String,
    /// The tool and what it is applied to.
    pub label: String,
    /// The active time of the run when the agent reported its start. Not a date, because clocks can
    /// jump.
    pub active_before: Duration,
}

/// A tool call of an agent that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedTool {
    /// The tool and what it was applied to.
    pub label: String,
    /// The time between the reports of its start and its end.
    pub duration: Duration,
}

/// An iteration that was started and has not finished.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenIteration {
    /// Its number.
    pub number: u32,
    /// The branch's commit at its start.
    pub head: CommitId,
    /// The active time of the run at its start. Not a date, because clocks can jump.
    pub active_before: Duration,
    /// The number of model calls that were started.
    pub attempts: u32,
    /// Whether a model call has no reply yet.
    pub waiting: bool,
    /// The number of replies.
    pub replies: usize,
    /// Whether the last reply was accepted.
    pub accepted: bool,
    /// The digest of the last reply on disk.
    pub response: Option<Digest>,
    /// The errors of the last reply, if it was rejected.
    pub rejected: Option<String>,
    /// The size of the prompt.
    pub prompt_bytes: usize,
    /// The most that the call in progress can be billed for.
    pub reserved: Option<TokenUsage>,
    /// The time spent waiting for the model or agent.
    pub model_ms: u64,
    /// The time spent running commands.
    pub command_ms: u64,
    /// The tokens used so far.
    pub usage: TokenUsage,
    /// The cost so far.
    pub cost: Usd,
    /// The results of finished actions, by index.
    pub results: BTreeMap<usize, ActionResult>,
    /// The indices of the actions that created a commit.
    pub commits: BTreeSet<usize>,
    /// The action in progress, with the digest that its file will have.
    pub pending: Option<(usize, Option<Digest>)>,
    /// How the agent's program ended, unless it was started again afterwards.
    pub agent_end: Option<AgentEnd>,
    /// The summary that it ended with.
    pub agent_summary: String,
    /// The number of commands that the model ran, or of tools that the agent used.
    pub commands: u32,
    /// The agent's tool calls in progress, oldest first.
    pub running_tools: Vec<RunningTool>,
    /// The tool call that the last event of the agent ended.
    pub finished_tool: Option<FinishedTool>,
    /// The failures, each once, limited to the number that the detection of circling needs.
    pub failures: Vec<FailureFacts>,
}

impl OpenIteration {
    pub(super) fn new(number: u32, head: CommitId, active_before: Duration) -> Self {
        Self {
            number,
            head,
            active_before,
            attempts: 0,
            waiting: false,
            replies: 0,
            accepted: false,
            response: None,
            rejected: None,
            prompt_bytes: 0,
            reserved: None,
            model_ms: 0,
            command_ms: 0,
            usage: TokenUsage::default(),
            cost: Usd::ZERO,
            results: BTreeMap::new(),
            commits: BTreeSet::new(),
            pending: None,
            agent_end: None,
            agent_summary: String::new(),
            commands: 0,
            running_tools: Vec::new(),
            finished_tool: None,
            failures: Vec::new(),
        }
    }

    pub(super) fn apply_model(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::ModelAsked {
                attempt,
                prompt_bytes,
                reserved,
                ..
            } => {
                self.attempts = *attempt;
                self.prompt_bytes = *prompt_bytes;
                self.reserved = *reserved;
                self.waiting = true;
                self.response = None;
                self.rejected = None;
            }
            ModelEvent::ModelReplied {
                response,
                duration_ms,
                ..
            } => {
                self.response = Some(response.clone());
                self.waiting = false;
                self.replies += 1;
                self.model_ms += duration_ms;
            }
            ModelEvent::ModelFailed { .. } | ModelEvent::ModelAbandoned { .. } => {
                self.waiting = false;
            }
            ModelEvent::ReplyRejected { errors, .. } => self.rejected = Some(errors.clone()),
            ModelEvent::ReplyAccepted { .. } => self.accepted = true,
        }
    }

    pub(super) fn apply_agent(&mut self, event: &AgentSessionEvent, active: Duration) {
        match event {
            AgentSessionEvent::AgentStarted {
                attempt,
                prompt_bytes,
                ..
            } => {
                self.attempts = *attempt;
                self.prompt_bytes = *prompt_bytes;
                self.agent_end = None;
                self.running_tools.clear();
            }
            AgentSessionEvent::AgentDid { did, .. } => self.apply_agent_event(did, active),
            AgentSessionEvent::AgentFinished {
                duration_ms,
                end,
                report,
                ..
            } => {
                self.model_ms += duration_ms;
                self.agent_end = Some(end.clone());
                self.agent_summary.clone_from(&report.summary);
            }
            AgentSessionEvent::AgentCharged { .. }
            | AgentSessionEvent::AgentMeasured { .. }
            | AgentSessionEvent::AgentSwitched { .. } => {}
        }
    }

    fn apply_agent_event(&mut self, event: &AgentEvent, active: Duration) {
        self.finished_tool = None;
        match event {
            AgentEvent::Tool { id, tool, label } => {
                self.commands = self.commands.saturating_add(1);
                if self.running_tools.len() < MAX_RUNNING_TOOLS {
                    self.running_tools.push(RunningTool {
                        id: id.clone(),
                        label: format!("{tool} {label}").trim_end().to_owned(),
                        active_before: active,
                    });
                }
            }
            AgentEvent::ToolDone { id, .. } => {
                let mut running = self.running_tools.iter();
                if let Some(index) = running.position(|tool| tool.id == *id) {
                    let tool = self.running_tools.remove(index);
                    self.finished_tool = Some(FinishedTool {
                        label: tool.label,
                        duration: active.saturating_sub(tool.active_before),
                    });
                }
            }
            AgentEvent::Started { .. }
            | AgentEvent::Text { .. }
            | AgentEvent::Usage { .. }
            | AgentEvent::Waiting { .. }
            | AgentEvent::Acknowledged { .. } => {}
        }
    }

    pub(super) fn apply_iteration(&mut self, event: &IterationEvent) {
        match event {
            IterationEvent::ActionStarted { index, after, .. } => {
                self.pending = Some((*index, after.clone()));
            }
            IterationEvent::ActionFinished {
                index,
                result,
                duration_ms,
                action,
                label,
                ..
            } => {
                self.pending = None;
                self.record_failure(action, label, result);
                if action == "run" {
                    self.command_ms += duration_ms;
                }
                self.record_result(*index, action, result);
            }
            IterationEvent::ClaimChecked { checks, .. } => {
                self.record_checks(checks);
                self.command_ms += checks.iter().map(|check| check.duration_ms).sum::<u64>();
            }
            IterationEvent::TestsRun { check, .. } => {
                self.command_ms += check.duration_ms;
                self.record_checks(std::slice::from_ref(check));
            }
            IterationEvent::IterationStarted { .. }
            | IterationEvent::BoxesTicked { .. }
            | IterationEvent::IterationFinished { .. }
            | IterationEvent::Gutter { .. } => {}
        }
    }

    fn record_result(&mut self, index: usize, action: &str, result: &ActionResult) {
        if action == "commit" && created_commit(result) {
            self.commits.insert(index);
        }
        if !matches!(result, ActionResult::Interrupted) {
            self.results.insert(index, result.clone());
        }
    }

    fn record_failure(&mut self, action: &str, label: &str, result: &ActionResult) {
        let failure = match result {
            ActionResult::Ran {
                ended,
                failure,
                problems,
                ..
            } => {
                self.commands = self.commands.saturating_add(1);
                let signature = failure.clone();
                signature.map(|signature| {
                    FailureFacts::new(signature, label, &ended.to_string())
                        .with_problems(problems.clone())
                })
            }
            ActionResult::Failed { why } | ActionResult::Refused { why } => {
                Some(FailureFacts::for_action(action, label, why))
            }
            ActionResult::Done { .. }
            | ActionResult::Skipped { .. }
            | ActionResult::Interrupted => None,
        };
        if let Some(failure) = failure {
            IterationFacts::add_failure(&mut self.failures, failure);
        }
    }

    pub(super) fn record_checks(&mut self, checks: &[CheckResult]) {
        for check in checks {
            let Some(signature) = &check.failure else {
                continue;
            };
            let ended = check.ended.to_string();
            let failure = FailureFacts::new(signature.clone(), &check.command, &ended)
                .with_problems(check.problems.clone());
            IterationFacts::add_failure(&mut self.failures, failure);
        }
    }
}

/// Returns whether a commit action created a commit: there may have been nothing to commit.
fn created_commit(result: &ActionResult) -> bool {
    match result {
        ActionResult::Done { detail } => detail.starts_with("commit "),
        ActionResult::Ran { .. }
        | ActionResult::Failed { .. }
        | ActionResult::Refused { .. }
        | ActionResult::Skipped { .. }
        | ActionResult::Interrupted => false,
    }
}
