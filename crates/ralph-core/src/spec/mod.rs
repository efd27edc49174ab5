//! Issues as specifications: the steps, the marks of progress and the dependencies of an issue.
//!
//! [`Spec::parse`] reads an issue: the branch and the dependencies from its front matter (`front`), the steps
//! and their checks from its headings (`document`). [`spec_task`] converts it to a task file, so that the work
//! on an issue is an ordinary run. In the sandbox the specification is the file `.ralph/spec.md`:
//! [`SpecDocument::accept_edits`] takes marks and notes from the agent's copy and nothing else. [`SpecRecord`]
//! decides what is written back to the issue, [`fit_issue`] keeps it within the size limit of a host.
//! [`unmet_dependencies`] and [`find_cycle`] decide whether an issue can start, [`IssueLabels`] names its status.

mod commands;
mod dependencies;
mod document;
mod edits;
mod front;
mod heading;
mod issue_spec;
mod labels;
mod limit;
mod notes;
mod record;
mod task_text;
#[cfg(test)]
mod tests;

pub use dependencies::{DependencyState, find_cycle, unmet_dependencies};
pub use document::{SpecDocument, SpecStep, StepUpdate, normalise_body};
pub use edits::AcceptedEdits;
pub use heading::StepMark;
pub use issue_spec::{MAX_STEPS, Spec};
pub use labels::{IssueLabels, IssueStatus, LabelNameError};
pub use limit::{FittedIssue, MAX_ISSUE_CHARS, fit_issue};
pub use notes::{MovedNotes, without_mentions};
pub use record::{SpecRecord, SpecWrite};
pub use task_text::{SpecTask, spec_task, step_box_id};
