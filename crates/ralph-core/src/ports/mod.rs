//! The traits that the outside implements: sandboxes, models, agents, source hosts, the clock.
//!
//! A trait exists only where two real implementations exist. An ability that not every
//! implementation has is an `Option` known before the call.

mod agent;
mod clock;
mod confinement;
mod gate;
mod model;
mod sandbox;
mod scm;

pub use agent::{
    Agent, AgentCommand, AgentEnd, AgentEvent, AgentReader, AgentReport, AgentTimeouts,
};
pub use clock::{Clock, SuspendedTime};
pub use confinement::{Confinement, MemoryLimit, StateHiding};
pub use gate::{Allowance, CREDENTIAL_ADDRESS, GateControl, GateEvent, ProviderFailure};
pub use model::{
    FinishReason, MAX_RETRY_WAIT, Model, ModelError, ModelReply, ModelRequest, TokenUsage,
};
pub use sandbox::{
    Exec, ExecOutcome, ExecProgram, ExecStatus, InputSource, Isolation, Labels, OutputSink,
    OutputStream, Preview, ProviderProblem, Sandbox, SandboxEntry, SandboxEntryKind, SandboxError,
    SandboxId, SandboxInfo, SandboxProvider, SandboxSpec, WriteMode,
};
pub use scm::{PullDraft, PullRequest, PullState, Scm, ScmError};
