//! The traits that the outside implements: sandboxes, models, source hosts, the clock.
//!
//! A trait exists only where two real implementations exist. An ability that not every
//! implementation has is an `Option` known before the call.

mod clock;
mod model;
mod sandbox;
mod scm;

pub use clock::Clock;
pub use model::{Finish, LONGEST_RETRY_WAIT, Model, ModelError, ModelRequest, Reply, Usage};
pub use sandbox::{
    Ended, Entry, EntryKind, Exec, ExecOutcome, Isolation, Labels, OutputSink, Preview, Problem,
    Program, Sandbox, SandboxError, SandboxId, SandboxInfo, SandboxProvider, SandboxSpec, Stream,
    WriteMode,
};
pub use scm::{PullDraft, PullRequest, PullState, Scm, ScmError};
