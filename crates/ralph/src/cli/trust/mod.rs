//! `ralph trust`: shows what a repository's files propose, and approves it.
//!
//! - `args` is what can be typed, `command` runs it, `lines` is what a review looks like.

mod args;
mod command;
mod lines;

pub(super) use args::TrustArgs;
pub(in crate::cli) use command::run;
pub(in crate::cli) use lines::{review_json, review_lines};
