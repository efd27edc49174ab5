//! Where a run stands: the fold over its events. Every reader uses this one, so all agree.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::budget::{Limits, Spent};
use crate::event::{ActionResult, DiffSize, Event, MessageState, Metrics, Purpose, Record};
use crate::id::{CommitId, Digest};
use crate::money::Usd;
use crate::plan::RunPlan;
use crate::ports::{AgentEnd, PullRequest, SandboxId, Usage};
use crate::profile::ModelChoice;
use crate::run::{Command, RunStatus};

/// Where a run stands after some records.
#[derive(Debug, Clone)]
pub struct RunState {
    /// Its plan.
    pub plan: RunPlan,
    /// Its status, as the last process that had it left it.
    pub status: RunStatus,
    /// The number of the last record.
    pub seq: u64,
    /// The highest epoch so far.
    pub epoch: u32,
    /// The process that took it last.
    pub pid: Option<u32>,
    /// When its first record was written.
    pub started_at: jiff::Timestamp,
    /// When its last record was written.
    pub updated_at: jiff::Timestamp,
    /// How long it was active.
    pub active: Duration,
    /// Tokens of all calls.
    pub usage: Usage,
    /// Cost of all calls.
    pub cost: Usd,
    /// The last iteration that was started; 0 before the first.
    pub iteration: u32,
    /// The digest of the contract in force.
    pub contract: Digest,
    /// What the contract in force allows to spend.
    pub limits: Limits,
    /// All contracts that were in force at some time.
    pub contracts: Vec<Digest>,
    /// The sandbox the work happens in.
    pub sandbox: Option<SandboxId>,
    /// Clean rooms that were made and not removed yet.
    pub clean_rooms: Vec<SandboxId>,
    /// Whether the repository stands in the sandbox.
    pub workspace_ready: bool,
    /// The last commit that the host has.
    pub head: CommitId,
    /// The last commit that was pushed.
    pub pushed: Option<CommitId>,
    /// The pull request.
    pub pull: Option<PullRequest>,
    /// Boxes that are ticked.
    pub ticked: BTreeSet<String>,
    /// The last commit that a clean room judged, and how.
    pub verified: Option<(CommitId, bool)>,
    /// The figures of the last finished iteration.
    pub last_metrics: Option<Box<Metrics>>,
    /// Scores of the last iterations, oldest first, at most five.
    pub loop_scores: Vec<f64>,
    /// Why the last wish to end with success was refused; empty once an iteration has seen it.
    pub refusals: Vec<String>,
    /// The iteration in which that happened.
    pub refused_in: u32,
    /// Places in a script that have been used.
    pub script: Vec<String>,
    /// The model that answers, if it was chosen by more than the plan's name.
    pub choice: Option<Box<ModelChoice>>,
    /// The profile that a person wants for the next question, until it is chosen or rejected.
    pub wanted_profile: Option<String>,
    /// The last command that was answered; they are answered in the order of their names.
    pub last_letter: Option<String>,
    /// Where the last iteration sent the run, until it is there.
    pub then: Option<RunStatus>,
    /// Hosts that something in the sandbox wanted to reach and may not.
    pub blocked_hosts: BTreeSet<String>,
    /// Hosts that a person has allowed during the run.
    pub allowed_hosts: BTreeSet<String>,
    /// Messages of people that no agent has got yet, by id, oldest first.
    pub messages: BTreeMap<String, String>,
    /// How many iterations in a row changed nothing at all.
    pub idle: u32,
    /// The iteration that was started and not finished.
    pub open: Option<OpenIteration>,
}

/// What is known of an iteration that has not finished.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenIteration {
    /// Its number.
    pub number: u32,
    /// The branch's commit when it began.
    pub head: CommitId,
    /// When it began.
    pub started_at: jiff::Timestamp,
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
    /// Waiting for the model so far.
    pub model_ms: u64,
    /// Running commands so far.
    pub command_ms: u64,
    /// Tokens so far.
    pub usage: Usage,
    /// Cost so far.
    pub cost: Usd,
    /// Actions that have ended, by index.
    pub results: BTreeMap<usize, ActionResult>,
    /// The action that was begun and has not ended, with the digest its file will have.
    pub pending: Option<(usize, Option<Digest>)>,
    /// How the agent's program ended last.
    pub agent_end: Option<AgentEnd>,
}

impl RunState {
    /// Starts from a journal's first record; none if that is not a run's creation.
    pub fn begin(first: &Record) -> Option<Self> {
        let Event::RunCreated { plan } = &first.event else {
            return None;
        };
        Some(Self {
            status: RunStatus::Created,
            seq: first.seq,
            epoch: first.epoch,
            pid: None,
            started_at: first.at,
            updated_at: first.at,
            active: Duration::ZERO,
            usage: Usage::default(),
            cost: Usd::ZERO,
            iteration: 0,
            contract: plan.contract.clone(),
            limits: plan.limits.clone(),
            contracts: vec![plan.contract.clone()],
            sandbox: None,
            clean_rooms: Vec::new(),
            workspace_ready: false,
            head: plan.base.clone(),
            pushed: None,
            pull: None,
            ticked: BTreeSet::new(),
            verified: None,
            last_metrics: None,
            loop_scores: Vec::new(),
            refusals: Vec::new(),
            refused_in: 0,
            script: Vec::new(),
            choice: None,
            wanted_profile: None,
            last_letter: None,
            then: None,
            blocked_hosts: BTreeSet::new(),
            allowed_hosts: BTreeSet::new(),
            messages: BTreeMap::new(),
            idle: 0,
            open: None,
            plan: (**plan).clone(),
        })
    }

    /// Folds a whole journal; none if it has no creation record.
    pub fn fold<'a>(records: impl IntoIterator<Item = &'a Record>) -> Option<Self> {
        let mut records = records.into_iter();
        let mut state = Self::begin(records.next()?)?;
        for record in records {
            state.apply(record);
        }
        Some(state)
    }

    /// Returns what it has spent.
    pub fn spent(&self) -> Spent {
        Spent {
            iterations: self.iteration,
            wall_time: self.active,
            cost: self.cost,
            tokens: self.usage.total(),
        }
    }

    /// Takes in the next record.
    pub fn apply(&mut self, record: &Record) {
        self.seq = record.seq;
        self.updated_at = record.at;
        self.active = self.active.max(Duration::from_millis(record.active_ms));
        match &record.event {
            Event::RunCreated { .. }
            | Event::ContractRejected { .. }
            | Event::Tamper { .. }
            | Event::BudgetWarning { .. }
            | Event::ImportRefused { .. }
            | Event::PushStarted { .. }
            | Event::StateSaved { .. }
            | Event::VerifyStarted { .. }
            | Event::QuotaCountdown { .. }
            | Event::StillActive {}
            | Event::Notice { .. } => {}
            Event::HostBlocked { host, .. } => self.blocked_hosts.extend([host.clone()]),
            Event::HostAllowed { host } => self.apply_allowed(host),
            Event::MessageMoved { id, text, to } => self.apply_message(id, text, *to),
            Event::RunOpened { .. }
            | Event::CommandReceived { .. }
            | Event::StatusChanged { .. }
            | Event::ModelChosen { .. }
            | Event::ProfileRejected { .. }
            | Event::ContractChanged { .. } => self.apply_life(&record.event),
            Event::SandboxCreated { .. } | Event::SandboxRemoved { .. } => {
                self.apply_sandbox(&record.event);
            }
            Event::WorkspaceReady { head, .. } => {
                self.workspace_ready = true;
                self.head = head.clone();
            }
            Event::CommitsImported { head, .. } => self.head = head.clone(),
            Event::Pushed { head, .. } => self.pushed = Some(head.clone()),
            Event::PullRequestUpdated { pull, .. } => self.pull = Some(pull.clone()),
            Event::BoxesTicked { ticked } => self.ticked = ticked.iter().cloned().collect(),
            Event::VerifyFinished { head, green, .. } => {
                self.verified = Some((head.clone(), *green));
            }
            Event::SuccessRefused { reasons, iteration } => {
                self.refusals.clone_from(reasons);
                self.refused_in = *iteration;
            }
            Event::IterationStarted { .. }
            | Event::ModelAsked { .. }
            | Event::ModelReplied { .. }
            | Event::ModelFailed { .. }
            | Event::ModelAbandoned { .. }
            | Event::ReplyRejected { .. }
            | Event::ReplyAccepted { .. }
            | Event::ActionStarted { .. }
            | Event::ActionFinished { .. }
            | Event::ClaimChecked { .. }
            | Event::TestsRun { .. }
            | Event::AgentStarted { .. }
            | Event::AgentDid { .. }
            | Event::AgentCharged { .. }
            | Event::AgentFinished { .. }
            | Event::IterationFinished { .. } => self.apply_iteration(record),
        }
    }

    fn apply_allowed(&mut self, host: &str) {
        self.blocked_hosts.remove(host);
        self.allowed_hosts.insert(host.to_owned());
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "`apply` above decides exhaustively which events come here"
    )]
    fn apply_life(&mut self, event: &Event) {
        match event {
            Event::RunOpened { epoch, pid } => {
                self.epoch = *epoch;
                self.pid = Some(*pid);
            }
            Event::CommandReceived {
                id,
                command,
                refused,
            } => {
                self.last_letter = Some(id.clone());
                if let (Command::Profile { name }, None) = (command, refused) {
                    self.wanted_profile = Some(name.clone());
                }
            }
            Event::ModelChosen { choice } => {
                self.choice = Some(choice.clone());
                // Another script has places of its own.
                self.script.clear();
                self.wanted_profile = None;
            }
            Event::ProfileRejected { .. } => self.wanted_profile = None,
            Event::StatusChanged { status } => {
                self.status = status.clone();
                if self.then.as_ref() == Some(status) {
                    self.then = None;
                }
            }
            Event::ContractChanged {
                contract, limits, ..
            } => {
                self.contract = contract.clone();
                self.contracts.push(contract.clone());
                self.limits = limits.clone();
            }
            _ => {}
        }
    }

    fn apply_sandbox(&mut self, event: &Event) {
        if let Event::SandboxCreated { sandbox, purpose } = event {
            match purpose {
                Purpose::Work => {
                    self.sandbox = Some(sandbox.clone());
                    self.workspace_ready = false;
                }
                Purpose::CleanRoom => self.clean_rooms.push(sandbox.clone()),
            }
        }
        if let Event::SandboxRemoved { sandbox } = event {
            self.clean_rooms.retain(|room| room != sandbox);
            if self.sandbox.as_ref() == Some(sandbox) {
                self.sandbox = None;
                self.workspace_ready = false;
            }
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "`apply` above decides exhaustively which events come here"
    )]
    fn apply_iteration(&mut self, record: &Record) {
        match &record.event {
            Event::IterationStarted { iteration, head } => {
                self.iteration = *iteration;
                self.open = Some(OpenIteration::new(*iteration, head.clone(), record.at));
            }
            Event::ModelReplied {
                usage,
                cost_usd,
                source,
                ..
            } => {
                self.usage.add(*usage);
                self.cost += *cost_usd;
                self.script.extend(source.clone());
            }
            Event::ModelAbandoned {
                usage, cost_usd, ..
            } => {
                self.usage.add(*usage);
                self.cost += *cost_usd;
            }
            Event::AgentCharged {
                usage, cost_usd, ..
            } => {
                self.usage.add(*usage);
                self.cost += *cost_usd;
            }
            Event::IterationFinished { metrics, then, .. } => {
                self.count_idle(metrics);
                self.open = None;
                self.then.clone_from(then);
                if self.refused_in < metrics.iteration {
                    self.refusals.clear();
                }
                self.loop_scores.extend(metrics.loop_score);
                let surplus = self.loop_scores.len().saturating_sub(5);
                self.loop_scores.drain(..surplus);
                self.last_metrics = Some(metrics.clone());
                return;
            }
            _ => {}
        }
        if let Some(open) = &mut self.open {
            open.apply(&record.event);
        }
    }
}

impl RunState {
    fn apply_message(&mut self, id: &str, text: &str, to: MessageState) {
        match to {
            MessageState::Queued => {
                self.messages.insert(id.to_owned(), text.to_owned());
            }
            MessageState::Delivered | MessageState::Acknowledged => {
                self.messages.remove(id);
            }
        }
    }

    /// Counts an iteration that neither committed, nor changed a file, nor ticked a box.
    fn count_idle(&mut self, metrics: &Metrics) {
        let before = self.last_metrics.as_ref();
        let ticked_before = before.map_or(0, |last| last.boxes_ticked);
        let head_before = self.open.as_ref().map(|open| &open.head);
        let is_idle = metrics.diff == DiffSize::default()
            && head_before == Some(&metrics.head)
            && metrics.boxes_ticked == ticked_before;
        self.idle = if is_idle { self.idle + 1 } else { 0 };
    }
}

impl OpenIteration {
    fn new(number: u32, head: CommitId, started_at: jiff::Timestamp) -> Self {
        Self {
            number,
            head,
            started_at,
            attempts: 0,
            waiting: false,
            replies: 0,
            accepted: false,
            response: None,
            rejected: None,
            prompt_bytes: 0,
            model_ms: 0,
            command_ms: 0,
            usage: Usage::default(),
            cost: Usd::ZERO,
            results: BTreeMap::new(),
            pending: None,
            agent_end: None,
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "`RunState::apply` decides exhaustively which events come here"
    )]
    fn apply(&mut self, event: &Event) {
        match event {
            Event::ModelAsked {
                attempt,
                prompt_bytes,
                ..
            } => {
                self.attempts = *attempt;
                self.prompt_bytes = *prompt_bytes;
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
            Event::AgentStarted {
                attempt,
                prompt_bytes,
                ..
            } => {
                self.attempts = *attempt;
                self.prompt_bytes = *prompt_bytes;
            }
            Event::AgentCharged {
                usage, cost_usd, ..
            } => {
                self.usage.add(*usage);
                self.cost += *cost_usd;
            }
            Event::AgentFinished {
                duration_ms, end, ..
            } => {
                self.model_ms += duration_ms;
                self.agent_end = Some(end.clone());
            }
            Event::ReplyRejected { errors, .. } => self.rejected = Some(errors.clone()),
            Event::ReplyAccepted { .. } => self.accepted = true,
            Event::ActionStarted { index, after, .. } => {
                self.pending = Some((*index, after.clone()));
            }
            Event::ActionFinished {
                index,
                result,
                duration_ms,
                action,
                ..
            } => {
                self.pending = None;
                if action == "run" {
                    self.command_ms += duration_ms;
                }
                if !matches!(result, ActionResult::Interrupted) {
                    self.results.insert(*index, result.clone());
                }
            }
            Event::ClaimChecked { checks, .. } => {
                self.command_ms += checks.iter().map(|check| check.duration_ms).sum::<u64>();
            }
            Event::TestsRun { check, .. } => self.command_ms += check.duration_ms,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
