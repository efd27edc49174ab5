//! The events of a run: one versioned enum that is the disk format and the wire format.
//!
//! An event is appended to the journal and synced before anybody sees it. Effects are told twice:
//! the intent before, the outcome after; what lies between them after a crash is settled by looking
//! at the world. The format evolves by adding.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::budget::{Budget, BudgetLimits};
use crate::doctor::{self, AppliedBy, DoctorTrigger};
use crate::id::{CommitId, Digest};
use crate::mitigation::{MitigationStep, SkippedRung};
use crate::money::Usd;
use crate::net::{ProviderTool, ProviderToolAction};
use crate::plan::RunPlan;
use crate::ports::{AgentEnd, AgentEvent, AgentReport, PullRequest, SandboxId, TokenUsage};
use crate::profile::ModelChoice;
use crate::run::{Command, RunStatus};
use crate::task::RunMode;
use crate::verdict::{CheckResult, VerifyFinding};

mod metrics;
mod results;

pub use metrics::{DiffSize, IterationMetrics, LogPosition};
pub use results::{ActionResult, IterationOutcome, MessageState};

/// The version of the record format.
pub const RECORD_VERSION: u32 = 1;

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JournalRecord {
    /// The format's version.
    pub v: u32,
    /// Its number; the first is 1.
    pub seq: u64,
    /// The SHA-256 of the line before it, without its newline; of nothing for the first.
    pub prev: Digest,
    /// When it was written.
    pub at: jiff::Timestamp,
    /// How long the run had been active by then, pauses not counted.
    pub active_ms: u64,
    /// Which opening of the run wrote it; see [`Event::RunOpened`].
    pub epoch: u32,
    /// What happened.
    pub event: Event,
}

/// What a sandbox is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxPurpose {
    /// The model's commands run there.
    Work,
    /// A commit is verified there.
    CleanRoom,
}

/// Everything that can happen to a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(
    missing_docs,
    reason = "the fields of an event are named for what they hold"
)]
pub enum Event {
    /// The run exists. Always the first event.
    RunCreated { plan: Box<RunPlan> },
    /// A process took the run. Each opening has a higher epoch.
    RunOpened {
        epoch: u32,
        pid: u32,
        /// The version of ralph; older journals do not record it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ralph: Option<String>,
    },
    /// The run stands somewhere else now.
    StatusChanged {
        #[serde(flatten)]
        status: RunStatus,
    },
    /// A person's command was taken or refused.
    CommandReceived {
        id: String,
        command: Command,
        refused: Option<String>,
    },
    /// What a person's command asked for besides the run's course was done, or could not be.
    CommandDone {
        id: String,
        done: bool,
        detail: String,
        /// The end of what was printed, for a command that prints.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        output: String,
    },
    /// A person changed the task file and the change holds from the next iteration on.
    ContractChanged {
        contract: Digest,
        changes: Vec<String>,
        limits: BudgetLimits,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<RunMode>,
        /// How many checkboxes there are now; older journals do not record it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checkboxes: Option<usize>,
    },
    /// A person changed the task file, but it cannot be used; the old one stays in force.
    ContractRejected { why: String },
    /// This model answers from the next question on.
    ModelChosen { choice: Box<ModelChoice> },
    /// A person wanted another profile, but it cannot be used; the model stays.
    ProfileRejected { profile: String, why: String },
    /// A usage limit is reached, and the run waits until it is reset.
    QuotaCountdown {
        iteration: u32,
        until: jiff::Timestamp,
        left_ms: u64,
    },
    /// The model's provider is not available, and the run waits for its next attempt.
    ProviderCountdown {
        iteration: u32,
        until: jiff::Timestamp,
        left_ms: u64,
    },

    /// A sandbox was made.
    SandboxCreated {
        sandbox: SandboxId,
        purpose: SandboxPurpose,
    },
    /// A sandbox was removed.
    SandboxRemoved { sandbox: SandboxId },
    /// The repository stands in the sandbox, on its branch.
    WorkspaceReady { branch: String, head: CommitId },

    /// An iteration begins.
    IterationStarted { iteration: u32, head: CommitId },
    /// Intent: the model is about to be asked.
    ModelAsked {
        iteration: u32,
        attempt: u32,
        prompt: Digest,
        prompt_bytes: usize,
        /// The most that the call can be billed for. Charged if its answer is lost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reserved: Option<TokenUsage>,
    },
    /// The model answered and the answer is on disk.
    ModelReplied {
        iteration: u32,
        attempt: u32,
        response: Digest,
        usage: TokenUsage,
        cost_usd: Usd,
        duration_ms: u64,
        /// The place in a script the reply came from.
        source: Option<String>,
    },
    /// The model did not answer.
    ModelFailed {
        iteration: u32,
        attempt: u32,
        error: String,
        retry_in_ms: Option<u64>,
    },
    /// Nobody heard the end of an answer: it is charged, by estimate where need be, and asked anew.
    ModelAbandoned {
        iteration: u32,
        attempt: u32,
        usage: TokenUsage,
        cost_usd: Usd,
    },
    /// The answer breaks the contract; nothing of it was performed.
    ReplyRejected {
        iteration: u32,
        attempt: u32,
        errors: String,
    },
    /// The answer was understood.
    ReplyAccepted {
        iteration: u32,
        summary: String,
        actions: usize,
        repaired: bool,
    },
    /// Intent: an action is about to be performed. `after` is the digest a file will have.
    ActionStarted {
        iteration: u32,
        index: usize,
        action: String,
        label: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Digest>,
    },
    /// An action has ended.
    ActionFinished {
        iteration: u32,
        index: usize,
        action: String,
        label: String,
        #[serde(flatten)]
        result: ActionResult,
        duration_ms: u64,
        /// The last lines of output, for people.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        tail: String,
    },
    /// The model claimed a box; the runner looked.
    ClaimChecked {
        iteration: u32,
        checkbox: String,
        verified: bool,
        why: String,
        checks: Vec<CheckResult>,
    },
    /// The set of ticked boxes changed.
    BoxesTicked { ticked: Vec<String> },
    /// The runner ran the test command in the workspace.
    TestsRun { iteration: u32, check: CheckResult },
    /// Something in the sandbox was not as the runner left it, and was put back.
    Tamper {
        iteration: u32,
        path: String,
        finding: String,
    },
    /// A budget is nearly used up.
    BudgetWarning { budget: Budget, percent: u8 },

    /// The sandbox's commits are in the host's repository.
    CommitsImported { head: CommitId, commits: u64 },
    /// The sandbox's commits were not taken.
    ImportRefused { why: String },
    /// Intent: a commit is about to be pushed.
    PushStarted { branch: String, head: CommitId },
    /// The source host's branch stands at this commit.
    Pushed { branch: String, head: CommitId },
    /// The pull request exists and says what it should.
    PullRequestUpdated { pull: PullRequest, opened: bool },
    /// The run's files are in the side ref.
    StateSaved { reference: String, commit: CommitId },

    /// Intent: the checks are about to run at the base commit, before any work.
    BaselineStarted { commit: CommitId },
    /// The checks ran at the base commit, or their results are known from an earlier run.
    BaselineFinished {
        commit: CommitId,
        contract: Digest,
        checks: Vec<CheckResult>,
        /// The names of the checks that are green there.
        green: Vec<String>,
        cached: bool,
    },
    /// Intent: the command of a check is about to run.
    CheckStarted { command: String },
    /// Intent: a commit is about to be verified in a clean room.
    VerifyStarted { head: CommitId },
    /// The clean room has spoken.
    VerifyFinished {
        head: CommitId,
        contract: Digest,
        green: bool,
        checks: Vec<CheckResult>,
        reasons: Vec<String>,
        /// What qualifies a green verdict, the most important first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        findings: Vec<VerifyFinding>,
    },
    /// A person resumed a run that waited because of changed tests: these changes are approved.
    TestChangesApproved { digest: Digest },
    /// The model's wish to end with success was not granted.
    SuccessRefused {
        iteration: u32,
        reasons: Vec<String>,
    },

    /// An iteration has ended; its files are on disk with these digests.
    IterationFinished {
        iteration: u32,
        summary: String,
        #[serde(flatten)]
        outcome: IterationOutcome,
        metrics: Box<IterationMetrics>,
        files: BTreeMap<String, Digest>,
        logs: BTreeMap<String, LogPosition>,
        /// Where the run goes from here, if not to the next iteration.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        then: Option<RunStatus>,
    },
    /// Intent: an agent's program is about to work in the sandbox.
    AgentStarted {
        iteration: u32,
        attempt: u32,
        agent: String,
        prompt: Digest,
        prompt_bytes: usize,
    },
    /// The agent did something, as far as it says.
    AgentDid {
        iteration: u32,
        #[serde(flatten)]
        did: AgentEvent,
    },
    /// A call of the agent to its model was paid for.
    AgentCharged {
        iteration: u32,
        model: String,
        usage: TokenUsage,
        cost_usd: Usd,
    },
    /// The agent's program has ended.
    AgentFinished {
        iteration: u32,
        attempt: u32,
        #[serde(flatten)]
        end: AgentEnd,
        report: AgentReport,
        duration_ms: u64,
    },
    /// Something in the sandbox wanted to reach a host that it may not.
    HostBlocked {
        host: String,
        port: u16,
        reason: String,
        /// What ran at that moment, if anybody knows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<String>,
    },
    /// Further hosts were blocked that are not recorded one by one, because there were too many.
    FurtherHostsBlocked {
        /// How many hosts, not counting those of earlier events.
        count: u64,
        /// A few of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        examples: Vec<String>,
    },
    /// A request to a model asked the provider for work outside of the sandbox.
    ProviderToolScreened {
        /// The provider's host.
        provider: String,
        /// The part of the request.
        what: String,
        /// The permission that it needs; none means that no permission lets it pass.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<ProviderTool>,
        /// The gate's decision.
        action: ProviderToolAction,
    },
    /// A person lets commands reach a host from now on.
    HostAllowed { host: String },
    /// A person's message to the agent moved on: `queued`, `delivered` or `acknowledged`.
    MessageMoved {
        id: String,
        text: String,
        to: MessageState,
    },

    /// The run goes in circles. Told after the end of the iteration that showed it, whose record is
    /// what counts.
    Gutter {
        iteration: u32,
        score: f64,
        consecutive: u32,
        evidence: Vec<String>,
        /// What is done about it.
        mitigation: MitigationStep,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        skipped: Vec<SkippedRung>,
    },
    /// Intent: the doctor is about to be asked.
    DoctorAsked {
        number: u32,
        attempt: u32,
        trigger: DoctorTrigger,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        profile: Option<String>,
        prompt: Digest,
        prompt_bytes: usize,
        /// The most that the call can be billed for. Charged if its answer is lost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reserved: Option<TokenUsage>,
    },
    /// The doctor answered and the answer is on disk.
    DoctorReplied {
        number: u32,
        attempt: u32,
        response: Digest,
        usage: TokenUsage,
        cost_usd: Usd,
        duration_ms: u64,
        /// The place in a script the reply came from.
        source: Option<String>,
    },
    /// A restart came between the question and the answer: it is charged by estimate.
    DoctorAbandoned {
        number: u32,
        attempt: u32,
        usage: TokenUsage,
        cost_usd: Usd,
    },
    /// An attempt to ask the doctor came to nothing.
    DoctorFailed {
        number: u32,
        attempt: u32,
        why: String,
        /// Whether it is not asked again.
        given_up: bool,
    },
    /// The doctor's report is in `diagnostics.md`.
    DoctorReported {
        number: u32,
        iteration: u32,
        report: Box<doctor::DoctorReport>,
    },
    /// What a report proposes was applied, as far as it could be.
    DiagnosisApplied {
        number: u32,
        by: AppliedBy,
        signs: usize,
        edits: usize,
        /// The edited contract, which is in force from the next iteration on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        contract: Option<Digest>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        profile: Option<String>,
        refused: Vec<String>,
    },
    /// Somebody looked from inside of the sandbox whether its walls stand, before work goes on there.
    SandboxChecked {
        /// What was seen, each in a few words.
        seen: Vec<String>,
        duration_ms: u64,
    },
    /// Lengths and digests of the run's files when a process ended its work on the run, by path below
    /// the run's directory. `ralph audit` compares them.
    FilesRecorded {
        files: BTreeMap<String, LogPosition>,
    },
    /// A command or a call goes on: the time it takes is not lost when the program is killed.
    StillActive {},
    /// Something a person should know.
    Notice { message: String },
}
