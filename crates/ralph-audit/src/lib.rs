//! The independent oracle: decides only from files, git and the list of processes whether a
//! run kept its promises.
//!
//! It depends on no other crate of the workspace, so it shares no code with the runner. It reads the
//! journal as plain JSON, computes hashes, scans the task file with a separate line scanner and has
//! a separate table of permitted statuses, so that a bug in the runner cannot hide itself here.
//! `ralph audit` calls [`audit`] and prints the result.
//!
//! One file per promise:
//!
//! | check | file | promise |
//! |---|---|---|
//! | I1 | `iterations` | no iteration is lost, its seven files match the record |
//! | I2 | `append_only` | the journal's chain is unbroken, the logs only grew |
//! | I3 | `commits` | no commit is duplicated or lost |
//! | I4 | `pulls` | one pull request, at the pushed commit |
//! | I5 | `secrets`, `known_secrets` | the run's files contain no known credential and nothing with the format of one |
//! | I6 | `budgets` | budgets are respected, active time never decreases |
//! | I7 | `orphans` | no sandbox and no process is left behind |
//! | I12 | `green`, `host_checks` | success means a commit that was green in a clean room |
//! | I13 | `writers` | one process writes at a time |
//! | I14 | `states` | the statuses follow the state machine |
//! | CON | `contract` | the task file is the one the journal pins |
//! | INT | `intents` | every intent has its outcome |
//! | GUT | `circling` | circling is measured and answered |
//! | FIL | `recorded_files` | the other files match the record |
//! | DEL | `delivered_objects` | the pushed objects exist and match their ids |
//!
//! `journal`, `seal`, `task`, `boxes`, `git` and `digest` read the evidence, `evidence`
//! contains it, `report` is the result.

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
mod host_checks;
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
