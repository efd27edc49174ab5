//! The iteration that was started and not finished: what a restart has to know of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::event::{ActionResult, Event};
use crate::gutter::{FailureFacts, IterationFacts};
use crate::id::{CommitId, Digest};
use crate::money::Usd;
use crate::ports::{AgentEnd, AgentEvent, TokenUsage};
use crate::verdict::CheckResult;

/// What is known of an iteration that has not finished.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenIteration {
    /// Its number.
    pub number: u32,
    /// The branch's commit when it began.
    pub head: CommitId,
    /// The active time of the run when it began: dates can jump.
    pub active_before: Duration,
    /// Model calls that were begun.
    pub attempts: u32,
    /// Whether the model was asked and has not answered.
    pub waiting: bool,
    /// Answers that arrived.
    pub replies: usize,
    /// Whether the last answer was understood.
    pub accepted: bool,
    /// The last answer on disk.
    pub response: Option<Digest>,
    /// What was wrong with the last answer, if it was rejected.
    pub rejected: Option<String>,
    /// Size of the prompt.
    pub prompt_bytes: usize,
    /// The most that the call in progress can be billed for.
    pub reserved: Option<TokenUsage>,
    /// Waiting for the model so far.
    pub model_ms: u64,
    /// Running commands so far.
    pub command_ms: u64,
    /// Tokens so far.
    pub usage: TokenUsage,
    /// Cost so far.
    pub cost: Usd,
    /// Actions that have ended, by index.
    pub results: BTreeMap<usize, ActionResult>,
    /// The indices of the actions that made a commit.
    pub commits: BTreeSet<usize>,
    /// The action that was begun and has not ended, with the digest its file will have.
    pub pending: Option<(usize, Option<Digest>)>,
    /// How the agent's program ended, unless it was started again since.
    pub agent_end: Option<AgentEnd>,
    /// Its last words.
    pub agent_summary: String,
    /// Commands of the model that ran, or tools that the agent used.
    pub commands: u32,
    /// What failed, each failure once, and not more than is needed to notice circling.
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
            failures: Vec::new(),
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "`RunState::apply` decides exhaustively which events come here"
    )]
    pub(super) fn apply(&mut self, event: &Event) {
        match event {
            Event::ModelAsked {
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
            Event::ModelFailed { .. } => self.waiting = false,
            Event::ModelAbandoned {
                usage, cost_usd, ..
            } => {
                self.waiting = false;
                self.usage.add(*usage);
                self.cost += *cost_usd;
            }
            Event::ModelReplied {
                response,
                usage,
                cost_usd,
                duration_ms,
                ..
            } => {
                self.response = Some(response.clone());
                self.waiting = false;
                self.replies += 1;
                self.model_ms += duration_ms;
                self.usage.add(*usage);
                self.cost += *cost_usd;
            }
            Event::ReplyRejected { errors, .. } => self.rejected = Some(errors.clone()),
            Event::ReplyAccepted { .. } => self.accepted = true,
            _ => self.apply_work(event),
        }
    }

    /// Takes in what is done with an answer.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "`RunState::apply` decides exhaustively which events come here"
    )]
    fn apply_work(&mut self, event: &Event) {
        match event {
            Event::AgentStarted {
                attempt,
                prompt_bytes,
                ..
            } => {
                self.attempts = *attempt;
                self.prompt_bytes = *prompt_bytes;
                self.agent_end = None;
            }
            Event::AgentDid {
                did: AgentEvent::Tool { .. },
                ..
            } => self.commands = self.commands.saturating_add(1),
            Event::AgentCharged {
                usage, cost_usd, ..
            } => {
                self.usage.add(*usage);
                self.cost += *cost_usd;
            }
            Event::AgentFinished {
                duration_ms,
                end,
                report,
                ..
            } => {
                self.model_ms += duration_ms;
                self.agent_end = Some(end.clone());
                self.agent_summary.clone_from(&report.summary);
            }
            Event::ActionStarted { index, after, .. } => {
                self.pending = Some((*index, after.clone()));
            }
            Event::ActionFinished {
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
            Event::ClaimChecked { checks, .. } => {
                self.record_checks(checks);
                self.command_ms += checks.iter().map(|check| check.duration_ms).sum::<u64>();
            }
            Event::TestsRun { check, .. } => {
                self.command_ms += check.duration_ms;
                self.record_checks(std::slice::from_ref(check));
            }
            _ => {}
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

/// Reports whether a commit action made a commit: there may have been nothing to commit.
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
