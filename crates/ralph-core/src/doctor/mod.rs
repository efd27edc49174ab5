//! The doctor: a strong model that diagnoses a stuck run and proposes remedies.
//!
//! [`build`] assembles its prompt from bounded parts, [`parse`] parses its reply,
//! [`prepend_report`] adds the report to `diagnostics.md`, and [`edit_body`] applies its edits to
//! the task file. The doctor only proposes; the user or the task's policy applies its proposals.
//! It can never change the front matter of a task.

mod diagnostics;
mod edits;
mod prompt;
mod report;

pub use diagnostics::{DoctorReportHeader, prepend_report};
pub use edits::{EditFreedom, EditedTask, edit_body};
pub use prompt::{DoctorPromptInput, MAX_DOCTOR_PROMPT_BYTES, build, build_repair};
pub use report::{DoctorReport, SpecEdit, parse};

use serde::{Deserialize, Serialize};

/// The reason for consulting the doctor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DoctorTrigger {
    /// The run is circling.
    Gutter,
    /// The interval `doctor_every` has elapsed.
    Routine,
    /// The user requested it.
    Person,
}

impl DoctorTrigger {
    /// Returns the reason for display.
    pub fn description(self) -> &'static str {
        match self {
            Self::Gutter => "the run is circling",
            Self::Routine => "scheduled",
            Self::Person => "requested by the user",
        }
    }
}

/// The authority that applies a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AppliedBy {
    /// The user.
    Person,
    /// The task's `doctor_apply: auto`.
    Policy,
}

/// Returns the doctor's profile: the one set in the task, else the one marked for the doctor, else
/// the fallback. `None` means the profile of the run.
pub fn select_profile<'a>(
    task_profile: Option<&'a str>,
    marked_profile: Option<&'a str>,
    fallback_profile: Option<&'a str>,
) -> Option<&'a str> {
    task_profile.or(marked_profile).or(fallback_profile)
}

#[cfg(test)]
mod tests;
