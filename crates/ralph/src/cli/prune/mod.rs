//! `ralph prune-sandboxes`, and the tidying up before a run: removes sandboxes that nobody uses.
//!
//! - `rule` decides, from what is known, and knows nothing else.
//! - `keeper` lists and removes the sandboxes of one provider; `standing` finds out how the run of each
//!   stands; `sweep` brings them together and removes what is stale.
//! - `command` is the command, `automatic` what a run does before it starts.

mod automatic;
mod command;
mod inventory;
mod retention;
mod run_status;
mod sweep;

pub(super) use automatic::prune_orphans;
pub(super) use command::run;
