//! Judges a task file before a run starts. An error keeps the run from starting, a warning does not.
//!
//! [`check`] is what the command line, the dashboard's editor and the start of a run call: it parses
//! and judges at once and reports everything it can in one go. [`lint`] judges a task that is parsed
//! already. Every [`LintFinding`] says where, what is wrong and what to do about it.

mod finding;
mod report;
mod rules;
mod shell;
#[cfg(test)]
mod tests;

pub(crate) use finding::{FindingLocation, excerpt, sort_and_truncate, to_u32};
pub use finding::{LintFinding, LintSeverity};
pub use report::{LintReport, check};
pub use rules::{MIN_CHECKBOXES, lint, unenforceable_cost_limit};
pub(crate) use shell::lint_command;
