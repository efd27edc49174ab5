//! The one prompt of an iteration, built from a snapshot of files and git.
//!
//! [`build`] is pure: the same [`PromptSnapshot`] gives the same bytes. Ten parts always come in the same
//! order: the rules are the system message, the other nine the user message. Every text that comes
//! from outside is cleaned of control characters, cut to a cap of its own, and fenced so that it
//! cannot end its fence from inside; whatever is cut names the file that has it in full. So no
//! input, however large or hostile, makes a prompt larger than [`MAX_PROMPT_BYTES`].
//!
//! The engine calls [`build`] once per iteration, and [`build_repair`] when the reply to it cannot
//! be read; [`build_agent`] is the prompt of an agent's program, which reads the files itself.

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

/// What other prompts are made with, too.
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
