//! The reply format: one JSON object per iteration, which is parsed, repaired and validated before
//! any of its actions is executed.
//!
//! [`parse`] turns a reply into a [`Response`], or into a [`ReplyError`] worded for the model. One
//! invalid action rejects the whole reply. A valid action may still be refused at execution:
//! [`rules`] defines the paths that the model must not change, and a refusal is a result like a
//! failed command. [`SCHEMA_TEXT`] describes the format to the model. The engine calls this module;
//! it does no I/O.
//!
//! `find` locates the answer in the text with `lexer`, `reasoning`, `example` and `wrapper`;
//! `repair` turns it into strict JSON; `schema` validates it with `fields`.

mod contract;
mod error;
mod escapes;
mod example;
mod fields;
mod find;
mod kind;
mod lexer;
pub mod limits;
mod message;
mod parse;
mod reasoning;
mod repair;
pub mod rules;
mod schema;
mod text;
mod wrapper;

pub use contract::{SCHEMA_TEXT, json_schema};
pub use error::{ReplyError, ReplyProblem, ReplyProblems};
pub use kind::{Action, Claims, Response};
pub use message::{RunnerTrailer, clean_message, runner_trailer};
pub(crate) use parse::find_object;
pub use parse::parse;

#[cfg(test)]
mod tests;
