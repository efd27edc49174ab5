//! Coding agents' programs: how each is started, and what its output means.
//!
//! What tells them apart is data, in `agents.toml` and in a project's file of the same form:
//!
//! - [`Agents`] are the [`Preset`]s that can be asked for, [`Preset::build_agent`] makes the agent of one.
//! - `claude`, `codex`, `opencode` and `lines` read one form of output each.
//! - `failure` tells from a status or a program's words what went wrong; `text` keeps all of it short.

mod claude;
mod codex;
mod failure;
mod opencode;
mod parse;
mod plain_text;
mod preset;
mod preset_agent;
mod session_summary;
mod text;

#[cfg(test)]
mod tests;

pub use parse::{Agents, AgentsError, UnknownAgentName};
pub use preset::{
    AgentCredential, AgentOutputFormat, CredentialKind, Preset, PresetTimeouts, PromptDelivery,
};
pub use preset_agent::{ModelRequired, PresetAgentSettings};
