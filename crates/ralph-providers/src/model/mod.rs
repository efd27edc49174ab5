//! Models that answer without a network; demos, tests and replays use them like any other model.
//!
//! - [`Scripted`] answers from a JSONL file that a person wrote (`--model scripted:FILE.jsonl`).
//! - [`Replay`] answers with what another run was answered (`--model replay:RUN`).
//!
//! Both say in a reply's `source` which of their replies it was. Whoever keeps the run's journal
//! hands these back after a restart, so that no reply is given twice.

mod replay;
mod script;
mod scripted;

pub use replay::{RecordedReply, Replay};
pub use script::ScriptError;
pub use scripted::Scripted;
