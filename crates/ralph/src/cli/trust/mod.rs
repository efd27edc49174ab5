//! What a repository's files ask for, and what the user approved of it: `ralph trust`, and the check
//! before a run is started.
//!
//! - `review` collects what a run would use of a repository's proposals.
//! - `gate` asks on a terminal and refuses without one.
//! - `command` is `ralph trust`.

mod args;
mod command;
mod gate;
mod lines;
mod review;

pub use args::{TrustArgs, TrustTask};
pub(in crate::cli) use command::{approve_host, run};
pub(in crate::cli) use gate::{gate, refusal, review};
pub(in crate::cli) use lines::{json, shown};
pub(in crate::cli) use review::{Review, unapproved_image};
