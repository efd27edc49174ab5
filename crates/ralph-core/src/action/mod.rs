//! The contract between a model and the runner: one JSON reply per iteration, read, repaired and
//! checked here before anything of it is executed.
//!
//! [`parse`] turns a reply into a [`Response`] or into a [`ReplyError`] whose text can be shown to
//! the model; there is nothing in between, so a reply with one wrong action executes none of them.
//! A well-formed action may still be refused when its turn comes: [`rules`] say which paths are not
//! the model's to change, and such a refusal is a result like a failed command. [`SCHEMA_TEXT`] is
//! what the model is told. The engine calls all of this; nothing here touches a file.
//!
//! The way of a reply: `find` finds the one answer in the text with the help of `lexer`, `thought`,
//! `example` and `wrapper`, `repair` makes it strict JSON, `schema` checks it with the help of `fields`.

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
