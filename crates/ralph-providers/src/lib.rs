//! Providers of external services: agents, sandboxes, models and source hosts.
//!
//! Each provider implements one port of `ralph-core` and is independent of the others. Modules:
//!
//! - [`agent`] starts coding agents and parses their output.
//! - [`docker`] connects to the Docker Engine.
//! - [`download`] downloads files from URLs given by the user.
//! - [`owner_process`] identifies processes of ralph.
//! - [`sandbox`] runs commands and stores their files.
//! - [`scm`] pushes branches and manages pull requests.
//! - [`model`] answers prompts: over HTTP, from a script, or from an earlier run.

pub mod agent;
pub mod docker;
pub mod download;
pub mod http;
mod logged;
pub mod model;
pub mod owner_process;
pub mod sandbox;
pub mod scm;
