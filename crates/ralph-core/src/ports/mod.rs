//! The traits that the outer crates implement: sandboxes, models, agents, source hosts, the clock.
//!
//! A trait exists only if it has two real implementations. A capability that some implementations
//! lack is an `Option` that is known before the call.

mod agent;
mod clock;
mod confinement;
mod gate;
mod model;
mod sandbox;
mod scm;

pub use agent::{
    Agent, AgentCommand, AgentEnd, AgentEvent, AgentReader, AgentReport, AgentTimeouts,
    TranscriptFormat,
};
pub use clock::{Clock, SuspendedTime};
pub use confinement::{Confinement, MemoryLimit, StateHiding};
pub use gate::{
    AgentMeasurements, Allowance, CREDENTIAL_ADDRESS, GateControl, GateEvent, ProviderFailure,
};
pub use model::{
    FinishReason, MAX_RETRY_WAIT, Model, ModelError, ModelReply, ModelRequest, TokenUsage,
};
pub use sandbox::{
    Exec, ExecOutcome, ExecProgram, ExecStatus, Freezer, InputSource, Isolation, Labels,
    OutputSink, OutputStream, Preview, ProviderProblem, Sandbox, SandboxEntry, SandboxEntryKind,
    SandboxError, SandboxId, SandboxInfo, SandboxProvider, SandboxSpec, WriteMode,
};
pub use scm::{
    CheckConclusion, CheckReport, CommitState, CommitStatus, GitCredential, GitLogin, HostAccess,
    HostBranch, HostCheck, HostError, HostErrorKind, HostIssue, HostRepository, IssueLabel,
    IssueTracker, KeyedComment, OpenPull, PullDraft, PullRequest, PullReview, PullState,
    ReviewVerdict, Scm, ScmError, SourceHost,
};
