//! Where a run stands: the fold over its events. Every reader uses this one, so all agree.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use crate::budget::{BudgetLimits, Spent};
use crate::event::{Event, IterationMetrics, JournalRecord, SandboxPurpose};
use crate::gutter::IterationWindow;
use crate::id::{CommitId, Digest};
use crate::mitigation::Ladder;
use crate::money::Usd;
use crate::plan::RunPlan;
use crate::ports::{PullRequest, SandboxId, TokenUsage};
use crate::profile::ModelChoice;
use crate::run::{Command, RunStatus};
use crate::task::RunMode;
use crate::verdict::{TestCount, VerifyFinding};

mod baseline;
mod consultation;
mod crash_loop;
mod iterations;
mod model;
mod open_iteration;
mod steering;

pub use baseline::Baseline;
pub use consultation::Consultation;
pub use crash_loop::{CrashedCommand, MAX_CRASHES};
pub use open_iteration::OpenIteration;
pub use steering::{MAX_MESSAGE_BYTES, MAX_WAITING_MESSAGES, Message, ScreenedTool, host_entry};

/// How many red commits are remembered.
const MAX_RED_COMMITS: usize = 100;

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
    pub usage: TokenUsage,
    /// Cost of all calls.
    pub cost: Usd,
    /// The last iteration that was started; 0 before the first.
    pub iteration: u32,
    /// How many checkboxes the contract in force has.
    pub checkboxes: usize,
    /// The digest of the contract in force.
    pub contract: Digest,
    /// How far people may step in.
    pub mode: RunMode,
    /// What the contract in force allows to spend.
    pub limits: BudgetLimits,
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
    /// The tests that its test command ran there, if they could be counted.
    pub verified_tests: Option<TestCount>,
    /// Commits that were red in a clean room, the last ones.
    pub red_commits: Vec<CommitId>,
    /// What qualifies that verdict, the most important first.
    pub findings: Vec<VerifyFinding>,
    /// The checks at the base commit, before any work.
    pub baseline: Option<Baseline>,
    /// The command that runs, as far as the records say.
    pub(crate) running_command: Option<String>,
    /// The command during which the program died last, and how often in a row.
    pub crashed_command: Option<CrashedCommand>,
    /// The changes to existing tests that a person approved last.
    pub approved_tests: Option<Digest>,
    /// The figures of the last finished iteration.
    pub last_metrics: Option<Box<IterationMetrics>>,
    /// Scores of the last iterations, oldest first, at most five.
    pub loop_scores: Vec<f64>,
    /// What is remembered of the last iterations to notice circling; it has a bound.
    pub window: IterationWindow,
    /// Where the run stands on the ladder out of a circle.
    pub ladder: Ladder,
    /// The model profile that answers, if the model was chosen by one.
    pub profile: Option<String>,
    /// What the doctor was asked and has said.
    pub doctor: Consultation,
    /// Commands of people that were accepted and ask for something that is not done yet.
    pub pending_commands: Vec<(String, Command)>,
    /// Why the last wish to end with success was refused; empty once an iteration has seen it.
    pub refusals: Vec<String>,
    /// The iteration in which that happened.
    pub refused_in_iteration: u32,
    /// Places in a script that have been used.
    pub used_script_lines: Vec<String>,
    /// The model that answers, if it was chosen by more than the plan's name.
    pub chosen_model: Option<Box<ModelChoice>>,
    /// The profile that a person, the ladder or the doctor wants for the next iteration, until it is
    /// chosen or rejected.
    pub wanted_profile: Option<String>,
    /// The contract that a person has put in force, until the run has applied it.
    pub wanted_contract: Option<Digest>,
    /// The last command that was answered; they are answered in the order of their names.
    pub last_command_file: Option<String>,
    /// Where the last iteration sent the run, until it is there.
    pub next_status: Option<RunStatus>,
    /// Hosts that something in the sandbox wanted to reach and may not, as an allowlist writes them.
    pub blocked_hosts: BTreeSet<String>,
    /// The same hosts, oldest first: the oldest makes room for the newest.
    blocked_order: VecDeque<String>,
    /// How many further hosts were blocked without being recorded one by one.
    pub further_blocked: u64,
    /// Provider-side tools in requests to models, each once.
    pub provider_tools: BTreeSet<ScreenedTool>,
    /// Hosts that a person has allowed during the run, as an allowlist writes them.
    pub allowed_hosts: BTreeSet<String>,
    /// Messages of people, oldest first: all that wait, and the last of those that were taken up.
    pub messages: Vec<Message>,
    /// How many iterations in a row changed nothing at all.
    pub idle: u32,
    /// The iteration that was started and not finished.
    pub open: Option<OpenIteration>,
}

impl RunState {
    /// Starts from a journal's first record; none if that is not a run's creation.
    pub fn from_first_record(first: &JournalRecord) -> Option<Self> {
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
            usage: TokenUsage::default(),
            cost: Usd::ZERO,
            iteration: 0,
            checkboxes: plan.checkboxes,
            contract: plan.contract.clone(),
            mode: plan.mode,
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
            verified_tests: None,
            red_commits: Vec::new(),
            findings: Vec::new(),
            baseline: None,
            running_command: None,
            crashed_command: None,
            approved_tests: None,
            last_metrics: None,
            loop_scores: Vec::new(),
            window: IterationWindow::default(),
            ladder: Ladder::default(),
            profile: None,
            doctor: Consultation::default(),
            pending_commands: Vec::new(),
            refusals: Vec::new(),
            refused_in_iteration: 0,
            used_script_lines: Vec::new(),
            chosen_model: None,
            wanted_profile: None,
            wanted_contract: None,
            last_command_file: None,
            next_status: None,
            blocked_hosts: BTreeSet::new(),
            blocked_order: VecDeque::new(),
            further_blocked: 0,
            provider_tools: BTreeSet::new(),
            allowed_hosts: BTreeSet::new(),
            messages: Vec::new(),
            idle: 0,
            open: None,
            plan: (**plan).clone(),
        })
    }

    /// Folds a whole journal; none if it has no creation record.
    pub fn from_records<'a>(records: impl IntoIterator<Item = &'a JournalRecord>) -> Option<Self> {
        let mut records = records.into_iter();
        let mut state = Self::from_first_record(records.next()?)?;
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
    #[expect(clippy::too_many_lines, reason = "a table with a line for every event")]
    pub fn apply(&mut self, record: &JournalRecord) {
        self.seq = record.seq;
        self.updated_at = record.at;
        self.active = self.active.max(Duration::from_millis(record.active_ms));
        self.record_crashes(&record.event);
        match &record.event {
            Event::RunCreated { .. }
            | Event::Tamper { .. }
            | Event::BudgetWarning { .. }
            | Event::ImportRefused { .. }
            | Event::PushStarted { .. }
            | Event::StateSaved { .. }
            | Event::VerifyStarted { .. }
            | Event::BaselineStarted { .. }
            | Event::CheckStarted { .. }
            | Event::Gutter { .. }
            | Event::QuotaCountdown { .. }
            | Event::ProviderCountdown { .. }
            | Event::SandboxChecked { .. }
            | Event::FilesRecorded { .. }
            | Event::StillActive {}
            | Event::Notice { .. } => {}
            Event::HostBlocked { .. }
            | Event::FurtherHostsBlocked { .. }
            | Event::ProviderToolScreened { .. }
            | Event::HostAllowed { .. }
            | Event::MessageMoved { .. } => {
                self.apply_steering(&record.event);
            }
            Event::RunOpened { .. }
            | Event::CommandReceived { .. }
            | Event::CommandDone { .. }
            | Event::StatusChanged { .. }
            | Event::ModelChosen { .. }
            | Event::ProfileRejected { .. }
            | Event::ContractRejected { .. }
            | Event::ContractChanged { .. } => self.apply_lifecycle(&record.event),
            Event::SandboxCreated { .. } | Event::SandboxRemoved { .. } => {
                self.apply_sandbox(&record.event);
            }
            Event::WorkspaceReady { .. }
            | Event::CommitsImported { .. }
            | Event::Pushed { .. }
            | Event::PullRequestUpdated { .. }
            | Event::BoxesTicked { .. }
            | Event::VerifyFinished { .. }
            | Event::TestChangesApproved { .. }
            | Event::BaselineFinished { .. }
            | Event::SuccessRefused { .. } => self.apply_work(&record.event),
            Event::DoctorAsked { .. }
            | Event::DoctorReplied { .. }
            | Event::DoctorAbandoned { .. }
            | Event::DoctorFailed { .. }
            | Event::DoctorReported { .. }
            | Event::DiagnosisApplied { .. } => self.apply_doctor(&record.event),
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

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "`apply` above decides exhaustively which events come here"
    )]
    fn apply_lifecycle(&mut self, event: &Event) {
        match event {
            Event::RunOpened { epoch, pid, .. } => {
                self.epoch = *epoch;
                self.pid = Some(*pid);
            }
            Event::CommandReceived {
                id,
                command,
                refused,
            } => {
                self.last_command_file = Some(id.clone());
                if let (Command::Profile { name }, None) = (command, refused) {
                    self.wanted_profile = Some(name.clone());
                }
                if let (Command::Task { contract }, None) = (command, refused) {
                    self.wanted_contract = Some(contract.clone());
                }
                if refused.is_none() && command.needs_execution() {
                    self.pending_commands.push((id.clone(), command.clone()));
                }
            }
            Event::CommandDone { id, .. } => self.pending_commands.retain(|(known, _)| known != id),
            Event::ModelChosen { choice } => {
                self.profile.clone_from(&choice.profile);
                self.chosen_model = Some(choice.clone());
                // Another script has places of its own.
                self.used_script_lines.clear();
                self.wanted_profile = None;
            }
            Event::ProfileRejected { .. } => {
                self.profile = self
                    .chosen_model
                    .as_ref()
                    .and_then(|choice| choice.profile.clone());
                self.wanted_profile = None;
            }
            Event::StatusChanged { status } => {
                self.status = status.clone();
                if self.next_status.as_ref() == Some(status) {
                    self.next_status = None;
                }
            }
            Event::ContractRejected { .. } => self.wanted_contract = None,
            Event::ContractChanged {
                contract,
                limits,
                mode,
                checkboxes,
                ..
            } => {
                self.wanted_contract = None;
                self.checkboxes = checkboxes.unwrap_or(self.checkboxes);
                self.mode = mode.unwrap_or(self.mode);
                self.contract = contract.clone();
                self.contracts.push(contract.clone());
                self.limits = limits.clone();
            }
            _ => {}
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "`apply` above decides exhaustively which events come here"
    )]
    fn apply_work(&mut self, event: &Event) {
        match event {
            Event::WorkspaceReady { head, .. } => {
                self.workspace_ready = true;
                self.head = head.clone();
            }
            Event::CommitsImported { head, .. } => self.head = head.clone(),
            Event::Pushed { head, .. } => self.pushed = Some(head.clone()),
            Event::PullRequestUpdated { pull, .. } => self.pull = Some(pull.clone()),
            Event::BoxesTicked { ticked } => self.ticked = ticked.iter().cloned().collect(),
            Event::VerifyFinished {
                head,
                green,
                checks,
                findings,
                ..
            } => {
                self.findings.clone_from(findings);
                if !green && !self.red_commits.contains(head) {
                    self.red_commits.push(head.clone());
                    let extra = self.red_commits.len().saturating_sub(MAX_RED_COMMITS);
                    self.red_commits.drain(..extra);
                }
                if let Some(open) = &mut self.open {
                    open.record_checks(checks);
                }
                self.verified = Some((head.clone(), *green));
                let mut checks = checks.iter();
                let test = checks.find(|check| check.name == "test_command");
                self.verified_tests = test.and_then(|check| check.tests);
            }
            Event::BaselineFinished {
                commit,
                checks,
                green,
                ..
            } => {
                self.baseline = Some(Baseline {
                    commit: commit.clone(),
                    checks: checks.clone(),
                    green: green.clone(),
                });
            }
            Event::TestChangesApproved { digest } => self.approved_tests = Some(digest.clone()),
            Event::SuccessRefused { reasons, iteration } => {
                self.refusals.clone_from(reasons);
                self.refused_in_iteration = *iteration;
            }
            _ => {}
        }
    }

    fn apply_sandbox(&mut self, event: &Event) {
        if let Event::SandboxCreated { sandbox, purpose } = event {
            match purpose {
                SandboxPurpose::Work => {
                    self.sandbox = Some(sandbox.clone());
                    self.workspace_ready = false;
                }
                SandboxPurpose::CleanRoom => self.clean_rooms.push(sandbox.clone()),
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
    fn apply_doctor(&mut self, event: &Event) {
        self.doctor.apply(event);
        match event {
            Event::DoctorReplied {
                usage,
                cost_usd,
                source,
                ..
            } => {
                self.usage.add(*usage);
                self.cost += *cost_usd;
                self.used_script_lines.extend(source.clone());
            }
            Event::DoctorAbandoned {
                usage, cost_usd, ..
            } => {
                self.usage.add(*usage);
                self.cost += *cost_usd;
            }
            Event::DiagnosisApplied {
                contract, profile, ..
            } => {
                if contract.is_some() {
                    self.wanted_contract.clone_from(contract);
                }
                if let Some(profile) = profile {
                    self.request_profile(profile);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
