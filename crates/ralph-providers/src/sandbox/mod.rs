//! Sandboxes, which run commands and store their files.
//!
//! - [`LocalProvider`] runs commands as processes of the user in a separate directory. It only
//!   protects ralph's own files, but has no requirements.
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
