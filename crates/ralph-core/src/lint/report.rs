//! Parses and checks a task file in one step.

use std::collections::HashSet;

use super::{LintFinding, LintSeverity, lint, sort_and_truncate};
use crate::task::TaskFile;

/// All findings about a task file.
#[derive(Debug, Clone)]
pub struct LintReport {
    /// Sorted by line; at most 100, plus one for the number of omitted findings.
    pub findings: Vec<LintFinding>,
    /// `Some` if the file could be parsed; the task may still violate rules.
    pub task: Option<TaskFile>,
}

impl LintReport {
    /// Returns whether there are no errors, so that a run may start.
    pub fn is_ok(&self) -> bool {
        let mut findings = self.findings.iter();
        findings.all(|finding| finding.severity != LintSeverity::Error)
    }
}

/// Parses and checks the bytes of a task file, reporting as many problems as possible.
pub fn check(bytes: &[u8]) -> LintReport {
    let draft = TaskFile::parse_draft(bytes);
    let mut findings = draft.findings;
    let parsed = findings.is_empty();
    if let Some(task) = &draft.task {
        let rejected_lines: HashSet<Option<u32>> =
            findings.iter().map(|finding| finding.line).collect();
        // A rejected value also counts as missing, but one finding for its line is enough.
        let new_findings = lint(task).into_iter().filter(|finding| {
            finding.line == Some(task.closing_line) || !rejected_lines.contains(&finding.line)
        });
        findings.extend(new_findings);
    }
    sort_and_truncate(&mut findings);
    LintReport {
        findings,
        task: draft.task.filter(|_| parsed),
    }
}
