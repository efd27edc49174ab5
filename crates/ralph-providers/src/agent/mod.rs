//! Coding agents' programs: how each is started, and what its output means.
//!
//! What tells them apart is data, in `agents.toml` and in a project's file of the same form:
//!
//! - [`Agents`] are the [`Preset`]s that can be asked for, [`Preset::program`] makes the agent of one.
//! - `claude`, `codex`, `opencode` and `lines` read one form of output each.
//! - `failure` tells from a status or a program's words what went wrong; `text` keeps all of it short.

mod claude;
mod codex;
mod failure;
mod lines;
mod opencode;
mod parse;
mod preset;
mod program;
mod story;
mod text;

#[cfg(test)]
mod tests;

pub use parse::{Agents, AgentsError, UnknownAgent};
pub use preset::{Credential, CredentialKind, Output, Preset, PromptForm, Timeouts};
pub use program::{ModelNeeded, ProgramSettings};
