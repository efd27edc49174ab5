//! Marks, labels and line formats that several modules share.

use ralph_app::format;
use ralph_core::verdict::{CheckResult, VerifyFinding};

use super::Style;
use crate::terminal::styled_line::{StyledLine, Tone};
use crate::terminal::width;

/// Marks a success.
pub(super) const GOOD: &str = "✓";
/// Marks a failure.
pub(super) const BAD: &str = "✗";
/// Marks a skipped or refused action.
pub(super) const SKIPPED: &str = "⊘";
/// Marks a warning.
pub(super) const WARN: &str = "⚠";

/// Starts a line with a mark in its tone.
pub(super) fn marked_line(mark: &str, tone: Tone) -> StyledLine {
    StyledLine::from_text("  ").span(tone, mark).plain(" ")
}

/// Starts a line with the mark of a success or a failure.
pub(super) fn result_line(good: bool) -> StyledLine {
    if good {
        marked_line(GOOD, Tone::Good)
    } else {
        marked_line(BAD, Tone::Bad)
    }
}

/// Creates a warning.
pub(super) fn warning_line(text: &str) -> StyledLine {
    marked_line(WARN, Tone::Warn).wrapped(Tone::Warn, text)
}

/// Creates a line of low importance.
pub(super) fn quiet_line(text: &str) -> StyledLine {
    StyledLine::from_text("  ").wrapped(Tone::Quiet, text)
}

/// Creates a line of low importance that is cut if it is too long, or that has a right edge.
pub(super) fn short_quiet_line(text: &str) -> StyledLine {
    StyledLine::from_text("  ").quiet(text).cut()
}

/// Creates a line with a name and a value.
pub fn field_line(name: &str, value: &str) -> StyledLine {
    StyledLine::new()
        .quiet(&width::pad(&format!("  {name}"), 11))
        .wrapped(Tone::Plain, value)
}

/// Creates lines for a list of reasons below a line.
pub(super) fn reason_lines<'a>(reasons: impl IntoIterator<Item = &'a str>) -> Vec<StyledLine> {
    reasons
        .into_iter()
        .map(|reason| {
            StyledLine::from_text("    ")
                .quiet("- ")
                .wrapped(Tone::Plain, reason)
        })
        .collect()
}

/// The number of a verdict's findings that are shown.
const SHOWN_FINDINGS: usize = 8;

/// Returns the findings that qualify a verdict, one per line, the most important first.
pub fn finding_lines(findings: &[VerifyFinding]) -> Vec<String> {
    let shown = findings.iter().take(SHOWN_FINDINGS);
    let mut lines: Vec<String> = shown
        .map(|finding| format!("{WARN} {}", finding.text))
        .collect();
    let more = findings.len().saturating_sub(SHOWN_FINDINGS) as u64;
    if more > 0 {
        let more = format::plural(more, "more finding", "more findings");
        lines.push(format!("{WARN} {more} of lower importance"));
    }
    lines
}

/// Creates a heading that divides the output.
pub(super) fn heading_lines(title: &str, style: Style) -> Vec<StyledLine> {
    let rule = match style {
        Style::Rich { columns } => {
            let used = width::columns(title) + 4;
            "─".repeat(columns.min(80).saturating_sub(used))
        }
        Style::Plain => "──".to_owned(),
    };
    let line = StyledLine::new()
        .span(Tone::Accent, "── ")
        .strong(title)
        .span(Tone::Accent, &format!(" {rule}"))
        .cut();
    vec![StyledLine::new(), line]
}

/// Formats a check: its name, command, exit and tests.
pub(super) fn check_line(check: &CheckResult) -> StyledLine {
    let counts = check
        .tests
        .map_or_else(String::new, |tests| format!(", {tests}"));
    result_line(check.is_green())
        .plain(&check.name)
        .shortened(Tone::Quiet, &format!(" `{}`", check.command))
        .plain(&format!(" {}{counts}", check.ended))
        .right_aligned(&format::milliseconds(check.duration_ms))
}
