//! The state of a run: the fold over its events, which every reader of a journal shares.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use crate::budget::{BudgetLimits, Spent};
use crate::event::{
    Adoption, DeliveryEvent, Event, IterationMetrics, JournalRecord, RunEvent, SandboxEvent,
    SandboxPurpose, VerificationEvent,
};
use crate::gutter::IterationWindow;
use crate::id::{CommitId, Digest};
use crate::mitigation::Ladder;
use crate::money::Usd;
use crate::plan::RunPlan;
use crate::ports::{AgentMeasurements, PullRequest, SandboxId, TokenUsage};
use crate::profile::ModelChoice;
use crate::run::{Command, FailReason, RunStatus};
use crate::task::RunMode;
use crate::verdict::{CheckResult, TestCount, VerifyFinding};

mod adoption;
mod baseline;
mod consultation;
mod crash_loop;
mod iterations;
mod model;
mod open_iteration;
mod source_host;
mod steering;

pub use baseline::Baseline;
pub use consultation::Consultation;
pub use crash_loop::{CrashedCommand, MAX_CRASHES};
pub use open_iteration::{FinishedTool, OpenIteration, RunningTool};
pub use source_host::{CiResult, ClosedBasePull, GreenVerification, HostFindings};
pub use steering::{MAX_MESSAGE_BYTES, MAX_WAITING_MESSAGES, Message, ScreenedTool, host_entry};

/// The number of red commits that are remembered.
const MAX_RED_COMMITS: usize = 100;

/// How often a run addressed the user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnnouncementCounts {
    /// Warnings that a budget is almost used up.
    pub budget_warnings: u64,
    pub notices: u64,
}

/// Whether the fallback agent of a run has replaced its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FallbackAgentUse {
    /// The agent works, if the run has one.
    Unused,
    /// The ladder requested the fallback, which works from the next iteration on.
    Wanted,
    /// The fallback works since this iteration.
    Since(u32),
}

/// The state of a run after a number of records.
#[derive(Debug, Clone)]
pub struct RunState {
    /// The plan it was created with.
    pub plan: RunPlan,
    /// The status that its last owner recorded.
    pub status: RunStatus,
    /// The number of the last record.
    pub seq: u64,
    /// The highest epoch so far.
    pub epoch: u32,
    /// The process that opened it last.
    pub pid: Option<u32>,
    /// When its first record was written.
    pub started_at: jiff::Timestamp,
    /// When its last record was written.
    pub updated_at: jiff::Timestamp,
    /// Its active time, without pauses.
    pub active: Duration,
    /// The tokens of all calls.
    pub usage: TokenUsage,
    /// The cost of all calls.
    pub cost: Usd,
    /// The last iteration that was started; 0 before the first.
    pub iteration: u32,
    /// The number of checkboxes of the contract in force.
    pub checkboxes: usize,
    /// The digest of the contract in force.
    pub contract: Digest,
    /// How far the user may intervene.
    pub mode: RunMode,
    /// The budget limits in force: those of the contract, or of the user on the command line.
    pub limits: BudgetLimits,
    /// Whether the run failed because a budget was used up, and the user has set budgets since.
    pub may_continue: bool,
    /// The digests of all contracts that were ever in force.
    pub contracts: Vec<Digest>,
    /// The work sandbox.
    pub sandbox: Option<SandboxId>,
    /// Clean rooms that were created and not removed yet.
    pub clean_rooms: Vec<SandboxId>,
    /// Whether the repository is in the sandbox.
    pub workspace_ready: bool,
    /// The digest of the dependencies that are installed in the work sandbox.
    pub setup: Option<Digest>,
    /// The digest of the dependencies at the first set-up, before any work.
    pub setup_at_base: Option<Digest>,
    /// The last commit in the host's repository.
    pub head: CommitId,
    /// The last commit that was pushed.
    pub pushed: Option<CommitId>,
    /// The number of the last record about a save of the run's files in the side ref.
    pub saved_at: Option<u64>,
    /// The pull request.
    pub pull: Option<PullRequest>,
    /// The findings at the source host.
    pub host: HostFindings,
    /// The last green verification.
    pub green: Option<GreenVerification>,
    /// Whether the user discarded the run's branch.
    pub discarded: bool,
    /// The ids of the ticked boxes.
    pub ticked: BTreeSet<String>,
    /// The last commit that was verified in a clean room, and whether it was green.
    pub verified: Option<(CommitId, bool)>,
    /// The tests that the test command ran in that verification, if they could be counted.
    pub verified_tests: Option<TestCount>,
    /// The last commits that were red in a clean room.
    pub red_commits: Vec<CommitId>,
    /// The findings of the last verification, the most important first.
    pub findings: Vec<VerifyFinding>,
    /// The checks at the base commit, before any work.
    pub baseline: Option<Baseline>,
    /// The command in progress, if one was recorded.
    pub(crate) running_command: Option<String>,
    /// The command during which the program crashed last, and how often in a row.
    pub crashed_command: Option<CrashedCommand>,
    /// The changes to existing tests that the user approved last.
    pub approved_tests: Option<Digest>,
    /// The metrics of the last finished iteration.
    pub last_metrics: Option<Box<IterationMetrics>>,
    /// The loop scores of the last five iterations, oldest first.
    pub loop_scores: Vec<f64>,
    /// The facts about the last iterations that circling is detected from.
    pub window: IterationWindow,
    /// The position on the ladder of mitigations.
    pub ladder: Ladder,
    /// The model profile in use, if the model was chosen by one.
    pub profile: Option<String>,
    /// The consultations of the doctor.
    pub doctor: Consultation,
    /// Accepted commands that are not executed yet.
    pub pending_commands: Vec<(String, Command)>,
    /// Why the last request to end with success was rejected; empty once an iteration has seen it.
    pub refusals: Vec<String>,
    /// The iteration of that request.
    pub refused_in_iteration: u32,
    /// The lines of a script that have been used.
    pub used_script_lines: Vec<String>,
    /// The model in use, if it was chosen by more than the plan's name.
    pub chosen_model: Option<Box<ModelChoice>>,
    /// The profile that the user, the ladder or the doctor requested for the next iteration, until it
    /// is chosen or rejected.
    pub wanted_profile: Option<String>,
    /// Whether the fallback agent has replaced the agent.
    pub fallback_agent: FallbackAgentUse,
    /// The contract that the user or the doctor requested, until the run has applied it.
    pub wanted_contract: Option<Digest>,
    /// The mode that the user requested for the next iteration, until it is in force.
    pub wanted_mode: Option<RunMode>,
    /// The question of the model, if the run paused for one last.
    pub question: Option<String>,
    /// The last command that was answered; commands are answered in the order of their names.
    pub last_command_file: Option<String>,
    /// The status that the last iteration requested, until it is set.
    pub next_status: Option<RunStatus>,
    /// Hosts that were blocked, as entries of an allowlist.
    pub blocked_hosts: BTreeSet<String>,
    /// The same hosts, oldest first; the oldest is dropped when the limit is reached.
    blocked_order: VecDeque<String>,
    /// The number of further hosts that were blocked without being recorded one by one.
    pub further_blocked: u64,
    /// Provider-side tools in requests to models, each once.
    pub provider_tools: BTreeSet<ScreenedTool>,
    /// Hosts that the user allowed during the run, as entries of an allowlist.
    pub allowed_hosts: BTreeSet<String>,
    /// Messages of the user, oldest first: all that wait, and the last that were acknowledged.
    pub messages: Vec<Message>,
    /// The number of notes and guardrails of the user since the last iteration started.
    pub(crate) unread_advice: usize,
    /// The numbers of warnings and notices.
    pub announced: AnnouncementCounts,
    /// The number of consecutive iterations without any change.
    pub idle: u32,
    /// How the run was rebuilt after its directory was lost, if it was.
    pub adoption: Option<Box<Adoption>>,
    /// The telemetry of all sessions of agents.
    pub measured: AgentMeasurements,
    /// The iteration in progress.
    pub open: Option<OpenIteration>,
}

impl RunState {
    /// Creates the state from a journal's first record; `None` if that does not create a run.
    #[expect(clippy::too_many_lines, reason = "one line per field")]
    pub fn from_first_record(first: &JournalRecord) -> Option<Self> {
        let Event::Run(RunEvent::RunCreated { plan }) = &first.event else {
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
            may_continue: false,
            contracts: vec![plan.contract.clone()],
            sandbox: None,
            clean_rooms: Vec::new(),
            workspace_ready: false,
            setup: None,
            setup_at_base: None,
            head: plan.base.clone(),
            pushed: None,
            saved_at: None,
            pull: None,
            host: HostFindings::default(),
            green: None,
            discarded: false,
            ticked: BTreeSet::new(),
            verified: None,
            verified_tests: None,
            red_commits: Vec::new(),
            findings: Vec::new(),
            baseline: None,
            running_command: None,
            measured: AgentMeasurements::default(),
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
            fallback_agent: FallbackAgentUse::Unused,
            wanted_contract: None,
            wanted_mode: None,
            question: None,
            last_command_file: None,
            next_status: None,
            blocked_hosts: BTreeSet::new(),
            blocked_order: VecDeque::new(),
            further_blocked: 0,
            provider_tools: BTreeSet::new(),
            allowed_hosts: BTreeSet::new(),
            messages: Vec::new(),
            unread_advice: 0,
            announced: AnnouncementCounts::default(),
            idle: 0,
            adoption: None,
            open: None,
            plan: (**plan).clone(),
        })
    }

    /// Folds a whole journal; `None` if it does not start with the creation of a run.
    pub fn from_records<'a>(records: impl IntoIterator<Item = &'a JournalRecord>) -> Option<Self> {
        let mut records = records.into_iter();
        let mut state = Self::from_first_record(records.next()?)?;
        for record in records {
            state.apply(record);
        }
        Some(state)
    }

    /// Returns the amounts that count towards the budgets.
    pub fn spent(&self) -> Spent {
        Spent {
            iterations: self.iteration,
            wall_time: self.active,
            cost: self.cost,
            tokens: self.usage.total(),
        }
    }

    /// Applies the next record.
    pub fn apply(&mut self, record: &JournalRecord) {
        let active = Duration::from_millis(record.active_ms);
        self.seq = record.seq;
        self.updated_at = record.at;
        self.active = self.active.max(active);
        match &record.event {
            Event::Run(event) => self.apply_run(event),
            Event::Command(event) => self.apply_command(event),
            Event::Sandbox(event) => self.apply_sandbox(event),
            Event::Iteration(event) => self.apply_iteration(event, active),
            Event::Model(event) => self.apply_model(event),
            Event::Agent(event) => self.apply_agent(event, active),
            Event::Egress(event) => self.apply_egress(event),
            Event::Verification(event) => self.apply_verification(event),
            Event::Delivery(event) => self.apply_delivery(event),
            Event::Doctor(event) => self.apply_doctor(event),
        }
    }

    fn apply_run(&mut self, event: &RunEvent) {
        match event {
            RunEvent::RunOpened { epoch, pid, .. } => {
                if self.status.is_active() {
                    self.record_crash();
                }
                self.epoch = *epoch;
                self.pid = Some(*pid);
            }
            RunEvent::RunAdopted { adoption } => self.apply_adoption(adoption),
            RunEvent::StatusChanged { status } => {
                if let RunStatus::Paused(reason) = status {
                    self.forget_crashes();
                    self.question = reason.question().map(str::to_owned);
                }
                if let RunStatus::WaitingCi(wait) = status {
                    self.host.waited_for = Some(wait.commit.clone());
                }
                self.status = status.clone();
                self.may_continue = false;
                if self.next_status.as_ref() == Some(status) {
                    self.next_status = None;
                }
            }
            RunEvent::ContractChanged {
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
            RunEvent::LimitsChanged { limits } => {
                self.limits = limits.clone();
                self.may_continue =
                    matches!(self.status, RunStatus::Failed(FailReason::Budget { .. }));
            }
            RunEvent::ContractRejected { .. } => self.wanted_contract = None,
            RunEvent::ModeChanged { mode } => {
                self.mode = *mode;
                self.wanted_mode = None;
            }
            RunEvent::ModelChosen { choice } => self.choose_model(choice),
            RunEvent::ProfileRejected { .. } => self.reject_profile(),
            RunEvent::BudgetWarning { .. } => self.announced.budget_warnings += 1,
            RunEvent::Notice { .. } => self.announced.notices += 1,
            RunEvent::RunCreated { .. }
            | RunEvent::QuotaCountdown { .. }
            | RunEvent::ProviderCountdown { .. }
            | RunEvent::FilesRecorded { .. }
            | RunEvent::StillActive {} => {}
        }
    }

    fn apply_sandbox(&mut self, event: &SandboxEvent) {
        match event {
            SandboxEvent::SandboxCreated { sandbox, purpose } => match purpose {
                SandboxPurpose::Work => {
                    self.sandbox = Some(sandbox.clone());
                    self.workspace_ready = false;
                    self.setup = None;
                }
                SandboxPurpose::CleanRoom => self.clean_rooms.push(sandbox.clone()),
            },
            SandboxEvent::SandboxRemoved { sandbox } => {
                self.running_command = None;
                self.clean_rooms.retain(|room| room != sandbox);
                if self.sandbox.as_ref() == Some(sandbox) {
                    self.sandbox = None;
                    self.workspace_ready = false;
                    self.setup = None;
                }
            }
            SandboxEvent::WorkspaceReady { head, .. } => {
                self.workspace_ready = true;
                self.head = head.clone();
            }
            SandboxEvent::SetupStarted { command, .. } => {
                self.running_command = Some(command.clone());
            }
            SandboxEvent::SetupFinished {
                sandbox,
                ended,
                digest,
                ..
            } => {
                self.running_command = None;
                if self.sandbox.as_ref() == Some(sandbox) {
                    self.setup = ended.is_success().then(|| digest.clone());
                    if self.iteration == 0 {
                        self.setup_at_base = Some(digest.clone());
                    }
                }
            }
            SandboxEvent::SandboxChecked { .. } | SandboxEvent::Tamper { .. } => {}
        }
    }

    fn apply_verification(&mut self, event: &VerificationEvent) {
        match event {
            VerificationEvent::CheckStarted { command } => {
                self.running_command = Some(command.clone());
            }
            VerificationEvent::BaselineFinished {
                commit,
                checks,
                green,
                ..
            } => {
                self.running_command = None;
                self.baseline = Some(Baseline {
                    commit: commit.clone(),
                    checks: checks.clone(),
                    green: green.clone(),
                });
            }
            VerificationEvent::VerifyFinished {
                head,
                contract,
                green,
                checks,
                findings,
                ..
            } => {
                self.green = green.then(|| GreenVerification {
                    head: head.clone(),
                    contract: contract.clone(),
                    checks: checks.clone(),
                });
                self.running_command = None;
                self.findings.clone_from(findings);
                self.record_verdict(head, *green, checks);
            }
            VerificationEvent::TestChangesApproved { digest } => {
                self.approved_tests = Some(digest.clone());
            }
            VerificationEvent::SuccessRefused { reasons, iteration } => {
                self.refusals.clone_from(reasons);
                self.refused_in_iteration = *iteration;
            }
            VerificationEvent::BaselineStarted { .. } | VerificationEvent::VerifyStarted { .. } => {
            }
        }
    }

    fn record_verdict(&mut self, head: &CommitId, green: bool, checks: &[CheckResult]) {
        if !green && !self.red_commits.contains(head) {
            self.red_commits.push(head.clone());
            let extra = self.red_commits.len().saturating_sub(MAX_RED_COMMITS);
            self.red_commits.drain(..extra);
        }
        if let Some(open) = &mut self.open {
            open.record_checks(checks);
        }
        self.verified = Some((head.clone(), green));
        let test = checks.iter().find(|check| check.name == "test_command");
        self.verified_tests = test.and_then(|check| check.tests);
    }

    fn apply_delivery(&mut self, event: &DeliveryEvent) {
        match event {
            DeliveryEvent::CommitsImported { head, .. } => {
                self.head = head.clone();
                self.host.awaits_user = false;
            }
            DeliveryEvent::Pushed { head, .. } => self.pushed = Some(head.clone()),
            DeliveryEvent::PullRequestUpdated { pull, .. } => self.pull = Some(pull.clone()),
            DeliveryEvent::Discarded { .. } => self.discarded = true,
            DeliveryEvent::StateSaved { .. } => self.saved_at = Some(self.seq),
            DeliveryEvent::CiProgress { .. }
            | DeliveryEvent::CiFinished { .. }
            | DeliveryEvent::OverlapFound { .. }
            | DeliveryEvent::OverlapEnded { .. }
            | DeliveryEvent::ReviewsReceived { .. }
            | DeliveryEvent::BaseMoved { .. }
            | DeliveryEvent::BasePullClosed { .. } => self.apply_host_finding(event),
            DeliveryEvent::ImportRefused { .. }
            | DeliveryEvent::PushStarted { .. }
            | DeliveryEvent::PullRequestStarted { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests;
