//! Does what a report proposes: signs, edits of the task's body, another profile. Each step can be
//! repeated after a crash.

use std::fmt::Write as _;

use ralph_core::doctor::{self, AppliedBy, Freedom, Report, SpecEdit};
use ralph_core::event::Event;

use crate::desk::Desk;
use crate::durable;
use crate::error::RunError;
use crate::run::Outside;

impl Desk<'_> {
    /// Applies the last report, if there is one that was not applied yet. Returns what was done.
    pub(crate) fn apply_report(&mut self, by: AppliedBy) -> Result<Option<String>, RunError> {
        let Some((number, report)) = self.state().doctor.report.clone() else {
            return Ok(None);
        };
        let iteration = self.state().doctor.seen;
        let mut signs = 0;
        for sign in &report.guardrails {
            signs += usize::from(self.append_once("guardrails.md", &sign.render(iteration))?);
        }
        let (edits, mut refused) = self.edit_task(&report, by)?;
        let profile = match report.model_profile.clone() {
            None => None,
            Some(profile) => match self.switch_to(&profile) {
                Ok(()) => Some(profile),
                Err(why) => {
                    refused.push(format!("profile `{profile}`: {why}"));
                    None
                }
            },
        };
        let done = describe(signs, edits, profile.as_deref(), &refused);
        let who = match by {
            AppliedBy::Person => "a person",
            AppliedBy::Policy => "`doctor_apply: auto`",
        };
        self.log_activity(&format!("report {number} is applied by {who}: {done}"))?;
        self.journal.append(Event::DiagnosisApplied {
            number,
            by,
            signs,
            edits,
            profile,
            refused,
        })?;
        Ok(Some(format!("report {number}: {done}")))
    }

    /// Looks whether the run can go on with the model of a profile.
    fn switch_to(&self, profile: &str) -> Result<(), String> {
        Outside::refuse_profiles(self.state())?;
        self.outside.model_of(profile, self.state()).map(drop)
    }

    /// Edits the body of the run's own copy of the task file, as a person would; it is taken up and
    /// checked before the next iteration.
    fn edit_task(&self, report: &Report, by: AppliedBy) -> Result<(usize, Vec<String>), RunError> {
        if report.spec_edits.is_empty() {
            return Ok((0, Vec::new()));
        }
        let freedom = match by {
            AppliedBy::Person => Freedom::Body,
            AppliedBy::Policy => Freedom::AddOnly,
        };
        let path = self.dir.contract();
        // A person may have changed it since; their text is what is edited.
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|_| self.pinned.task().with_ticks(&self.state().ticked));
        let (edits, mut refused) = self.without_secrets(&report.spec_edits);
        match doctor::edit_body(&text, &edits, freedom) {
            Ok(edited) => {
                if !edited.applied.is_empty() {
                    durable::write(&path, edited.text.as_bytes())?;
                }
                refused.extend(edited.refused);
                Ok((edited.applied.len(), refused))
            }
            Err(why) => Ok((0, vec![format!("the task file cannot be edited: {why}")])),
        }
    }

    /// Separates the edits that can be applied from the reasons to refuse the others.
    ///
    /// The journal has a redacted copy of the report, which a restarted run reads. A placeholder in it
    /// must not become part of the task.
    fn without_secrets(&self, edits: &[SpecEdit]) -> (Vec<SpecEdit>, Vec<String>) {
        let redactor = &self.outside.redactor;
        let mut refused = Vec::new();
        let usable = edits.iter().filter(|edit| {
            let why = match redactor.known_in(edit.replace.as_bytes()) {
                Some(name) => format!("the text contains the value of `{name}`"),
                None if edit.replace.contains("[REDACTED") => "the text was redacted".to_owned(),
                None => return true,
            };
            refused.push(format!("edit \"{}\": {why}", redactor.redact(&edit.why)));
            false
        });
        (usable.cloned().collect(), refused)
    }
}

fn describe(signs: usize, edits: usize, profile: Option<&str>, refused: &[String]) -> String {
    // Writing to a String cannot fail.
    let mut done = format!("{signs} signs, {edits} edits of the task");
    if let Some(profile) = profile {
        let _ = write!(done, ", profile `{profile}`");
    }
    if !refused.is_empty() {
        let _ = write!(done, "; not applied: {}", refused.join("; "));
    }
    done
}
