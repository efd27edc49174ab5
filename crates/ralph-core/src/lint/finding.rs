//! Findings about a task file.

use std::fmt;

use serde::Serialize;
use utoipa::ToSchema;

/// Whether a finding prevents a run from starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LintSeverity {
    /// The run does not start.
    Error,
    /// The run starts; the user should check the finding.
    Warning,
}

/// A problem in a task file with its fix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct LintFinding {
    /// Stable, such as `missing-test-command`.
    pub code: &'static str,
    pub severity: LintSeverity,
    /// Counted from 1.
    pub line: Option<u32>,
    /// In characters, counted from 1.
    pub column: Option<u32>,
    pub message: String,
    pub fix: String,
}

impl LintFinding {
    /// Creates an error without a line.
    pub fn error(code: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            code,
            severity: LintSeverity::Error,
            line: None,
            column: None,
            message: message.into(),
            fix: fix.into(),
        }
    }

    /// Creates a warning without a line.
    pub fn warning(code: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            severity: LintSeverity::Warning,
            ..Self::error(code, message, fix)
        }
    }

    /// Creates the error for a missing task file.
    pub fn missing_task_file(path: &str) -> Self {
        Self::error(
            "missing-task-file",
            format!("there is no task file `{path}`"),
            "create one with `ralph init`",
        )
    }

    /// Sets the line.
    #[must_use]
    pub fn on_line(mut self, line: u32) -> Self {
        self.line = Some(line);
        self
    }

    /// Sets the line and the column.
    #[must_use]
    pub(crate) fn at_location(mut self, location: FindingLocation) -> Self {
        self.line = Some(location.line);
        self.column = Some(location.column);
        self
    }
}

impl fmt::Display for LintFinding {
    /// Prints `line 7: message — fix`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        write!(f, "{} — {}", self.message, self.fix)
    }
}

/// A location in the task file. Both numbers count from 1, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FindingLocation {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// Converts a number of lines or characters. Files are capped far below the range of `u32`.
pub(crate) fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns the start of a text from the file, short enough for a one-line message and safe to print
/// on a terminal.
pub(crate) fn excerpt(text: &str) -> String {
    const MAX_CHARS: usize = 60;
    let one_line = text.split('\n').next().unwrap_or_default();
    let printable = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut short: String = one_line.chars().take(MAX_CHARS).map(printable).collect();
    if one_line.chars().nth(MAX_CHARS).is_some() || one_line.len() < text.len() {
        short.push('…');
    }
    short
}

/// The most findings reported for a file.
const MAX_FINDINGS: usize = 100;

/// Sorts findings by line and truncates the list; a final finding reports the number of omitted
/// ones.
pub(crate) fn sort_and_truncate(findings: &mut Vec<LintFinding>) {
    findings.sort_by_key(|finding| (finding.line, finding.column, finding.severity));
    if findings.len() <= MAX_FINDINGS {
        return;
    }
    let rest = findings.split_off(MAX_FINDINGS);
    let message = format!("there are {} more findings", rest.len());
    let mut last = LintFinding::error(
        "more-findings",
        message,
        "fix these first, then check again",
    );
    last.severity = rest
        .iter()
        .map(|finding| finding.severity)
        .min()
        .unwrap_or(last.severity);
    findings.push(last);
}
