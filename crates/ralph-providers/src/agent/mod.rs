//! Coding agent programs: how each is started and how its output is parsed.
//!
//! The differences between agents are data, in `agents.toml` and in a project file of the same
//! format:
//!
//! - [`Agents`] is the set of available [`Preset`]s; [`Preset::build_agent`] creates an agent.
//! - `claude`, `codex`, `opencode` and `plain_text` parse one output format each.
//! - [`TranscriptReader`] parses stored output for display.
//! - `failure` classifies failures by status or error message; `text` truncates output.

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
mod transcript;

#[cfg(test)]
mod tests;

pub use parse::{Agents, AgentsError, UnknownAgentName};
pub use preset::{
    AgentCredential, AgentOutputFormat, CredentialKind, Preset, PresetTimeouts, PromptDelivery,
};
pub use preset_agent::{ModelRequired, PresetAgentSettings};
pub use transcript::{TranscriptEntry, TranscriptReader, TranscriptToolState};
