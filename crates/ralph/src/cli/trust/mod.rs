//! `ralph trust`: shows and approves the proposals of a repository's files.
//!
//! - `args` defines the arguments, `command` runs them, `lines` formats a review.

mod args;
mod command;
mod lines;

pub(super) use args::TrustArgs;
pub(in crate::cli) use command::run;
pub(in crate::cli) use lines::review_lines;
