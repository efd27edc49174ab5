//! Models: those behind an HTTP API, and two that work without a network.
//!
//! - [`http`] contains all models that are named as in LiteLLM, such as `zai/glm-4.7`.
//! - [`ScriptedModel`] replies from a hand-written JSONL file (`--model scripted:FILE.jsonl`).
//! - [`ReplayModel`] repeats the replies of another run (`--model replay:RUN`).
//! - [`AbsentModel`] is a placeholder for an agent's own model.
//!
//! Scripts and replays identify each reply in its `source`. After a restart the caller passes the
//! sources from the journal back, so that no reply is given twice.

mod absent;
pub mod http;
mod replay;
mod script;
mod scripted;

pub use absent::AbsentModel;
pub use replay::{RecordedReply, ReplayModel};
pub use script::ScriptError;
pub use scripted::ScriptedModel;
