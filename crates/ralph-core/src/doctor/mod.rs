//! The doctor: a strong model looks at a run that is stuck and proposes what could help.
//!
//! [`build`] makes its prompt from bounded parts, [`parse`] reads its reply or says what is wrong with
//! it, [`prepend_report`] writes a report into `diagnostics.md`, [`edit_body`] carries out what it proposes
//! for the task file. It proposes, a person or the task's policy applies; the front matter of a task is
//! out of its reach. The engine calls all of this.

mod diagnostics;
mod edits;
mod prompt;
mod report;

pub use diagnostics::{DoctorReportHeader, prepend_report};
pub use edits::{EditFreedom, EditedTask, edit_body};
pub use prompt::{DoctorPromptInput, MAX_DOCTOR_PROMPT_BYTES, build, build_repair};
pub use report::{DoctorReport, SpecEdit, parse};

use serde::{Deserialize, Serialize};

/// Why the doctor is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DoctorTrigger {
    /// The run goes in circles.
    Gutter,
    /// It is its turn: `doctor_every`.
    Routine,
    /// A person wants it.
    Person,
}

impl DoctorTrigger {
    /// Returns why, in words.
    pub fn description(self) -> &'static str {
        match self {
            Self::Gutter => "the run goes in circles",
            Self::Routine => "every so many iterations",
            Self::Person => "a person asked",
        }
    }
}

/// Who lets a report be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AppliedBy {
    /// A person.
    Person,
    /// The task: `doctor_apply: auto`.
    Policy,
}

/// Returns the profile of the doctor: the task's own, the one that is marked for it, the fallback; none
/// is the run's usual one.
pub fn select_profile<'a>(
    of_task: Option<&'a str>,
    marked: Option<&'a str>,
    fallback: Option<&'a str>,
) -> Option<&'a str> {
    of_task.or(marked).or(fallback)
}

#[cfg(test)]
mod tests;
