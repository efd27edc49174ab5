//! The prompt of an iteration, built from a snapshot of files and git.
//!
//! [`build`] is pure: the same [`PromptSnapshot`] produces the same bytes. The ten parts have a
//! fixed order: the rules are the system message, the other nine the user message. Every external
//! text is stripped of control characters, cut to its own cap and fenced so that it cannot close
//! its fence; an excerpt names the file with the full text. No input, however large or hostile,
//! produces a prompt larger than [`MAX_PROMPT_BYTES`].
//!
//! The engine calls [`build`] once per iteration, and [`build_repair`] if the reply cannot be
//! parsed. [`build_agent`] builds the prompt of a coding agent, which reads the files itself.

mod agent;
mod build;
mod cap;
mod excerpt;
mod repair;
mod sanitize;
mod snapshot;
#[cfg(test)]
mod tests;
mod writer;

/// Building blocks that other prompts use, too.
pub(crate) mod parts {
    pub(crate) use super::cap::{ExcerptCap, KeptEnd};
    pub(crate) use super::excerpt::excerpt;
    pub(crate) use super::writer::PromptWriter;
}

pub use agent::{AgentSnapshot, build_agent};
pub use build::build;
pub use cap::{MAX_PROMPT_BYTES, MAX_REPAIR_BYTES};
pub use repair::build_repair;
pub use snapshot::{GitSummary, LastOutput, LastTests, PromptSnapshot};
