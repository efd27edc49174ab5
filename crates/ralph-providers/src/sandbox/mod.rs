//! Sandboxes: where commands run and files live.
//!
//! - [`LocalProvider`] runs commands as processes of the user in a directory of its own. It keeps
//!   ralph's own files from them, and nothing else of the machine; it needs nothing either.
//! - [`DockerProvider`] runs them in a container without a network.

mod convert;
mod docker;
pub mod egress;
mod guest_program;
mod local;

pub use docker::{
    DockerLimits, DockerProvider, DockerSettings, DockerTransport, ExistingSandbox, UnusedVolume,
};
pub use local::{LocalLimits, LocalProvider};
