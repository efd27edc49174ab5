//! Models: those behind an HTTP API, and two that answer without a network.
//!
//! - [`http`] are all that are named as LiteLLM names them, such as `zai/glm-4.7`.
//! - [`ScriptedModel`] answers from a JSONL file that a person wrote (`--model scripted:FILE.jsonl`).
//! - [`ReplayModel`] answers with what another run was answered (`--model replay:RUN`).
//! - [`AbsentModel`] answers nobody: it stands for the model of an agent.
//!
//! Scripts and replays say in a reply's `source` which of their replies it was. Whoever keeps the run's journal
//! hands these back after a restart, so that no reply is given twice.

mod absent;
pub mod http;
mod replay;
mod script;
mod scripted;

pub use absent::AbsentModel;
pub use replay::{RecordedReply, ReplayModel};
pub use script::ScriptError;
pub use scripted::ScriptedModel;
