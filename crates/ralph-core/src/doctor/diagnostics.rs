//! Writes `diagnostics.md`, with the newest report first.

use std::fmt::Write as _;

use super::DoctorTrigger;
use super::report::DoctorReport;

const LATEST: &str = "## Latest report";
const EARLIER: &str = "## Earlier reports";
/// The most reports in the file; older ones remain in the journal.
const MAX_REPORTS: usize = 10;

/// The metadata of a report.
#[derive(Debug, Clone, Copy)]
pub struct DoctorReportHeader<'a> {
    pub number: u32,
    /// The last iteration before the report.
    pub iteration: u32,
    pub trigger: DoctorTrigger,
    pub model: &'a str,
}

/// Returns the file with the report on top. Replaces an earlier report with the same number.
pub fn prepend_report(file: &str, header: DoctorReportHeader<'_>, report: &DoctorReport) -> String {
    let (head, old) = match file.split_once(LATEST) {
        Some((head, old)) => (head.trim_end(), old),
        None => (file.trim_end(), ""),
    };
    let mut reports: Vec<String> = old
        .split("\n### report ")
        .skip(1)
        .map(|text| {
            let text = text.trim_end();
            let text = text.strip_suffix(EARLIER).unwrap_or(text);
            format!("### report {}", text.trim_end())
        })
        .collect();
    let title = format!("### report {} ", header.number);
    reports.retain(|known| !known.starts_with(&title));
    reports.insert(0, render(header, report));
    reports.truncate(MAX_REPORTS);
    let mut text = format!("{head}\n\n{LATEST}\n\n{}\n", reports[0]);
    if reports.len() > 1 {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n{EARLIER}\n\n{}\n", reports[1..].join("\n\n"));
    }
    text
}

fn render(header: DoctorReportHeader<'_>, report: &DoctorReport) -> String {
    let DoctorReportHeader {
        number,
        iteration,
        trigger,
        model,
    } = header;
    let mut text = format!(
        "### report {number} (after iteration {iteration}, {}, `{model}`)\n\n{}\n",
        trigger.description(),
        report.summary
    );
    let guardrails: Vec<String> = report
        .guardrails
        .iter()
        .map(|guardrail| {
            format!(
                "{}: when {}: {}",
                guardrail.name, guardrail.trigger, guardrail.instruction
            )
        })
        .collect();
    let edits: Vec<String> = report
        .spec_edits
        .iter()
        .map(|edit| {
            let location = if edit.find.is_empty() {
                "at the end".to_owned()
            } else {
                format!("instead of `{}`", edit.find)
            };
            format!("{location}: `{}` {}", edit.replace, edit.why)
        })
        .collect();
    let profile: Vec<String> = report.model_profile.iter().cloned().collect();
    for (title, entries) in [
        ("Observed failure patterns", &report.patterns),
        ("Likely root causes", &report.root_causes),
        ("Suggested guardrails (signs)", &guardrails),
        ("Suggested spec edits (tighten verification)", &edits),
        ("Suggested model profile change (if relevant)", &profile),
    ] {
        let _ = write!(text, "\n{title}\n");
        if entries.is_empty() {
            text.push_str("- (none)\n");
        }
        for entry in entries {
            let _ = writeln!(text, "- {}", one_line(entry));
        }
    }
    text.trim_end().to_owned()
}

/// Joins the words into one line, so that an entry cannot imitate the heading of a report.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}
