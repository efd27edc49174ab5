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

pub use agent::{Agent, AgentCommand, AgentEnd, AgentEvent, AgentReader, AgentReport, Patience};
pub use clock::{Absence, Clock};
pub use confinement::{Confinement, MemoryLimit, StateHiding};
pub use gate::{Allowance, CREDENTIALS, GateNews, Gatekeeper, ProviderFailure};
pub use model::{Finish, LONGEST_RETRY_WAIT, Model, ModelError, ModelRequest, Reply, Usage};
pub use sandbox::{
    Ended, Entry, EntryKind, Exec, ExecOutcome, InputSource, Isolation, Labels, OutputSink,
    Preview, Problem, Program, Sandbox, SandboxError, SandboxId, SandboxInfo, SandboxProvider,
    SandboxSpec, Stream, WriteMode,
};
pub use scm::{PullDraft, PullRequest, PullState, Scm, ScmError};
