//! Applies the proposals of a report: guardrails, edits of the task's body, another
//! profile. Each step can be repeated after a crash.

use std::fmt::Write as _;

use ralph_core::doctor::{self, AppliedBy, DoctorReport, EditFreedom, SpecEdit};
use ralph_core::event::DoctorEvent;
use ralph_core::id::Digest;
use ralph_core::lint;
use ralph_core::task::TaskFile;

use crate::contract::PinnedTask;
use crate::contract::{self, ContractProposal};
use crate::error::RunError;
use crate::recorder::Recorder;
use crate::services::Services;

/// Applies the last report, if it was not applied yet. Returns a summary.
pub(crate) fn apply_report(
    recorder: &mut Recorder,
    services: &Services,
    pinned: &PinnedTask,
    by: AppliedBy,
) -> Result<Option<String>, RunError> {
    let Some((number, report)) = recorder.state().doctor.report.clone() else {
        return Ok(None);
    };
    let iteration = recorder.state().doctor.last_seen_iteration;
    let mut guardrails = 0;
    for guardrail in &report.guardrails {
        guardrails +=
            usize::from(recorder.append_once("guardrails.md", &guardrail.render(iteration))?);
    }
    let TaskEdits {
        edits,
        contract,
        mut refused,
    } = edit_task(recorder, pinned, &report, by)?;
    let profile = match report.model_profile.clone() {
        None => None,
        Some(profile) => match check_profile(recorder, services, &profile) {
            Ok(()) => Some(profile),
            Err(why) => {
                refused.push(format!("profile `{profile}`: {why}"));
                None
            }
        },
    };
    let done = describe_applied(guardrails, edits, profile.as_deref(), &refused);
    let actor = match by {
        AppliedBy::Person => "the user",
        AppliedBy::Policy => "`doctor_apply: auto`",
    };
    recorder.log_activity(&format!("report {number} applied by {actor}: {done}"))?;
    recorder.append(DoctorEvent::DiagnosisApplied {
        number,
        by,
        signs: guardrails,
        edits,
        contract,
        profile,
        refused,
    })?;
    Ok(Some(format!("report {number}: {done}")))
}

/// Checks whether the run can continue with the model of a profile.
fn check_profile(recorder: &Recorder, services: &Services, profile: &str) -> Result<(), String> {
    Services::check_profile_switch(recorder.state())?;
    services
        .model_for_profile(profile, recorder.state())
        .map(drop)
}

/// Edits the body of the task, and stores the result, which takes effect before the next iteration.
fn edit_task(
    recorder: &Recorder,
    pinned: &PinnedTask,
    report: &DoctorReport,
    by: AppliedBy,
) -> Result<TaskEdits, RunError> {
    if report.spec_edits.is_empty() {
        return Ok(TaskEdits::default());
    }
    let freedom = match by {
        AppliedBy::Person => EditFreedom::Body,
        AppliedBy::Policy => EditFreedom::AddOnly,
    };
    let text = pinned.task().with_ticks(&recorder.state().ticked);
    let (edits, mut refused) = reject_secret_edits(recorder, &report.spec_edits);
    let edited = match doctor::edit_body(&text, &edits, freedom) {
        Ok(edited) => edited,
        Err(why) => {
            return Ok(TaskEdits::refused(format!(
                "the task file cannot be edited: {why}"
            )));
        }
    };
    refused.extend(edited.refused);
    if edited.applied.is_empty() {
        return Ok(TaskEdits {
            refused,
            ..TaskEdits::default()
        });
    }
    let task = match parse_runnable_task(&edited.text) {
        Ok(task) => task,
        Err(why) => return Ok(TaskEdits::refused(why)),
    };
    let redactor = &recorder.redactor;
    let contract =
        match contract::propose(&recorder.dir, &recorder.state().contract, &task, redactor)? {
            ContractProposal::New { contract, .. } => Some(contract),
            ContractProposal::InForce => None,
            ContractProposal::ChangesFixedKey(key) => {
                return Ok(TaskEdits::refused(format!("the edits change `{key}`")));
            }
            ContractProposal::ContainsSecret(name) => {
                let why = format!("the text contains the value of `{name}`");
                return Ok(TaskEdits::refused(why));
            }
        };
    Ok(TaskEdits {
        edits: edited.applied.len(),
        contract,
        refused,
    })
}

/// Separates the edits that can be applied from the reasons to refuse the others.
///
/// The journal has a redacted copy of the report, which a restarted run reads. A placeholder in it
/// must not become part of the task.
fn reject_secret_edits(recorder: &Recorder, edits: &[SpecEdit]) -> (Vec<SpecEdit>, Vec<String>) {
    let redactor = &recorder.redactor;
    let mut refused = Vec::new();
    let usable = edits.iter().filter(|edit| {
        let why = match redactor.find_known(edit.replace.as_bytes()) {
            Some(name) => format!("the text contains the value of `{name}`"),
            None if edit.replace.contains("[REDACTED") => "the text was redacted".to_owned(),
            None => return true,
        };
        refused.push(format!("edit \"{}\": {why}", redactor.redact(&edit.why)));
        false
    });
    (usable.cloned().collect(), refused)
}

/// The results of a report's edits of the task.
#[derive(Default)]
struct TaskEdits {
    edits: usize,
    contract: Option<Digest>,
    refused: Vec<String>,
}

impl TaskEdits {
    fn refused(why: String) -> Self {
        Self {
            refused: vec![why],
            ..Self::default()
        }
    }
}

/// Returns the task of an edited text, if it can be run.
fn parse_runnable_task(text: &str) -> Result<TaskFile, String> {
    let checked = lint::check(text.as_bytes());
    let first = checked.findings.first().map(ToString::to_string);
    let is_usable = checked.is_ok();
    checked.task.filter(|_| is_usable).ok_or_else(|| {
        let why = first.unwrap_or_default();
        format!("the edited task file cannot be used: {why}")
    })
}

fn describe_applied(
    guardrails: usize,
    edits: usize,
    profile: Option<&str>,
    refused: &[String],
) -> String {
    let plural = |number: usize, noun: &str| match number {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    };
    let (guardrails, edits) = (plural(guardrails, "guardrail"), plural(edits, "edit"));
    let mut done = format!("{guardrails}, {edits} of the task");
    // Writing to a String cannot fail.
    if let Some(profile) = profile {
        let _ = write!(done, ", profile `{profile}`");
    }
    if !refused.is_empty() {
        let _ = write!(done, "; not applied: {}", refused.join("; "));
    }
    done
}
