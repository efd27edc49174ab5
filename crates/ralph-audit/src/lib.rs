//! The independent oracle: decides from files and git alone whether a run kept its promises.
//!
//! It depends on no other crate of the workspace, so it shares no code with the runner. It reads the journal as plain JSON, hashes by itself,
//! scans the task file with an own line scanner and keeps an own table of legal statuses, so that a
//! mistake in the runner cannot hide itself here. `ralph audit` calls [`audit`] and prints the result.
//!
//! One file per promise:
//!
//! | check | file | promise |
//! |---|---|---|
//! | I1 | `iterations` | no iteration is lost, its seven files are what was recorded |
//! | I2 | `append_only` | the journal's chain holds, the logs only ever grew |
//! | I3 | `commits` | no commit is doubled or lost |
//! | I4 | `pulls` | one pull request, at the pushed commit |
//! | I5 | `secrets`, `known` | nothing shaped like a credential and no known one in the run's files |
//! | I6 | `budgets` | budgets hold, the clock of active time never goes back |
//! | I7 | `orphans` | no sandbox and no process is left behind |
//! | I12 | `green` | success means a commit that a clean room found green |
//! | I13 | `writers` | one process writes at a time |
//! | I14 | `states` | the statuses follow the state machine |
//! | CON | `contract` | the task file is the one the journal pins |
//! | INT | `intents` | every intent has its outcome |
//! | GUT | `circling` | circling is measured and answered |
//! | FIL | `files` | the other files are as they were recorded |
//! | DEL | `delivered` | the objects of what was pushed are there and are what their ids say |
//!
//! `journal`, `seal`, `task`, `boxes`, `git` and `digest` read the evidence, `evidence` holds it, `report` is the answer.

mod append_only;
mod boxes;
mod budgets;
mod circling;
mod commits;
mod contract;
mod delivered_objects;
mod digest;
mod evidence;
mod git;
mod green;
mod intents;
mod iterations;
mod journal;
mod known_secrets;
mod oracle;
mod orphans;
mod pulls;
mod recorded_files;
mod report;
mod seal;
mod secrets;
mod states;
mod task;
mod writers;

#[cfg(test)]
mod tests;

pub use oracle::audit;
pub use report::{AuditCheck, AuditReport, AuditStatus};
