//! Parses the doctor's reply into a report.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::action;
use crate::advice::Guardrail;

/// The most guardrails in a report; the rest is dropped.
const MAX_GUARDRAILS: usize = 3;
/// The most entries in any other list; the rest is dropped.
const MAX_ENTRIES: usize = 10;
/// The length to which entries are truncated, in characters.
const MAX_CHARS: usize = 1000;
/// The longest text of an edit, in bytes.
const MAX_EDIT_BYTES: usize = 8 << 10;

/// A report of the doctor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DoctorReport {
    /// Describes the failure in a sentence or two.
    pub summary: String,
    /// Observed failure patterns.
    pub patterns: Vec<String>,
    /// Likely causes of the patterns.
    pub root_causes: Vec<String>,
    /// One to three.
    pub guardrails: Vec<Guardrail>,
    /// Proposed changes to the body of the task.
    pub spec_edits: Vec<SpecEdit>,
    /// The profile that the run should switch to.
    pub model_profile: Option<String>,
}

/// A change to the body of the task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpecEdit {
    /// A text that occurs exactly once in the body; empty to append to the body.
    #[serde(default)]
    pub find: String,
    pub replace: String,
    /// The purpose of the edit.
    #[serde(default)]
    pub why: String,
}

/// The reply as sent by the model; only the essential fields are required.
#[derive(Deserialize)]
struct RawDoctorReport {
    summary: String,
    #[serde(
        default,
        alias = "failure_patterns",
        alias = "observed_failure_patterns"
    )]
    patterns: Vec<String>,
    #[serde(default, alias = "causes", alias = "likely_root_causes")]
    root_causes: Vec<String>,
    #[serde(alias = "signs")]
    guardrails: Vec<Guardrail>,
    #[serde(default)]
    spec_edits: Vec<SpecEdit>,
    #[serde(default, alias = "profile")]
    model_profile: Option<String>,
}

/// Parses a reply of the doctor. The error describes the problem for the model.
pub fn parse(reply: &str) -> Result<DoctorReport, String> {
    let object = action::find_object(reply, "summary").map_err(|error| error.to_string())?;
    let raw: RawDoctorReport =
        serde_json::from_value(object.into()).map_err(|error| error.to_string())?;
    if raw.summary.trim().is_empty() {
        return Err("`summary` is empty".into());
    }
    if raw.guardrails.is_empty() {
        return Err("`guardrails` is empty; 1 to 3 guardrails are expected".into());
    }
    for (index, guardrail) in raw.guardrails.iter().enumerate() {
        if let Some(missing) = guardrail.missing_field() {
            return Err(format!("`guardrails[{index}]` lacks {missing}"));
        }
    }
    for (index, edit) in raw.spec_edits.iter().enumerate() {
        if edit.find.len().max(edit.replace.len()) > MAX_EDIT_BYTES {
            return Err(format!(
                "`spec_edits[{index}]` has more than {MAX_EDIT_BYTES} bytes"
            ));
        }
    }
    let mut guardrails = raw.guardrails;
    guardrails.truncate(MAX_GUARDRAILS);
    let mut spec_edits = raw.spec_edits;
    spec_edits.truncate(MAX_ENTRIES);
    let profile = raw.model_profile.map(|profile| profile.trim().to_owned());
    Ok(DoctorReport {
        summary: truncate_entry(&raw.summary),
        patterns: truncate_entries(&raw.patterns),
        root_causes: truncate_entries(&raw.root_causes),
        guardrails,
        spec_edits,
        model_profile: profile.filter(|profile| !profile.is_empty()),
    })
}

fn truncate_entries(texts: &[String]) -> Vec<String> {
    let kept = texts.iter().map(|text| truncate_entry(text));
    kept.filter(|text| !text.is_empty())
        .take(MAX_ENTRIES)
        .collect()
}

/// Joins the words of `text` into one line without control characters, and truncates it.
fn truncate_entry(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    line.chars()
        .filter(|c| !c.is_control())
        .take(MAX_CHARS)
        .collect()
}
