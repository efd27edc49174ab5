//! What a repository's files ask for, and what the user approved of it: `ralph trust`, and the check
//! before a run is started.
//!
//! - `review` collects what a run would use of a repository's proposals.
//! - `gate` asks on a terminal and refuses without one.
//! - `command` is `ralph trust`.

mod approval;
mod args;
mod command;
mod lines;
mod review;

pub(in crate::cli) use approval::{refusal_error, require_approval, review_run};
pub use args::{TrustActionArgs, TrustArgs};
pub(in crate::cli) use command::{approve_host, run};
pub(in crate::cli) use lines::{review_json, review_lines};
pub(in crate::cli) use review::{TrustReview, unapproved_image};
