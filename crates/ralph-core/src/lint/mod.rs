//! Checks a task file before a run starts. Errors prevent the start, warnings do not.
//!
//! `ralph lint`, the preflight checks, the planning of a run and the doctor's edits call [`check`],
//! which parses a file and reports all problems together. [`lint`] checks an already parsed task.
//! Every [`LintFinding`] has a message, a fix and, if possible, a line.

mod finding;
mod report;
mod rules;
mod shell;
#[cfg(test)]
mod tests;

pub(crate) use finding::{FindingLocation, excerpt, sort_and_truncate, to_u32};
pub use finding::{LintFinding, LintSeverity};
pub use report::{LintReport, check};
pub use rules::{lint, unavailable_sandbox, unenforceable_cost_limit};
pub(crate) use shell::lint_command;
