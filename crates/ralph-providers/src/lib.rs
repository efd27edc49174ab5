//! The outside: where commands run, where changes go, who answers.
//!
//! Each provider implements one port of `ralph-core` and knows no other provider. The map:
//!
//! - [`agent`] starts coding agents and reads what they print.
//! - [`docker`] is the Docker Engine.
//! - [`download`] fetches a file that the user named by its address.
//! - [`http`] sends HTTP requests.
//! - [`sandbox`] runs commands and keeps files.
//! - [`scm`] is where branches are pushed and pull requests live.
//! - [`model`] answers prompts: over HTTP, from a script, or from an earlier run.

pub mod agent;
pub mod docker;
pub mod download;
pub mod http;
mod logged;
pub mod model;
pub mod sandbox;
pub mod scm;
