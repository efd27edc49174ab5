//! Sandboxes: where commands run and files live.
//!
//! - [`LocalProvider`] runs commands as processes of the user in a directory of its own. It keeps
//!   ralph's own files from them, and nothing else of the machine; it needs nothing either.
//! - [`DockerProvider`] runs them in a container without a network.

mod convert;
mod docker;
mod guest_program;
mod local;
pub mod way_out;

pub use docker::{DockerProvider, DockerSettings, Found, Limits, Reach, Remnant};
pub use local::{LocalLimits, LocalProvider};
