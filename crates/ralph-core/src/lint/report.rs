//! Parsing and judging in one go.

use std::collections::HashSet;

use super::{LintFinding, LintSeverity, lint, sort_and_truncate};
use crate::task::TaskFile;

/// Everything there is to say about a task file.
#[derive(Debug, Clone)]
pub struct LintReport {
    /// The findings by line, at most a hundred and how many more there are.
    pub findings: Vec<LintFinding>,
    /// The task, if the file could be parsed; it may still break rules.
    pub task: Option<TaskFile>,
}

impl LintReport {
    /// Returns whether a run may start: there are no errors.
    pub fn is_ok(&self) -> bool {
        let mut findings = self.findings.iter();
        findings.all(|finding| finding.severity != LintSeverity::Error)
    }
}

/// Parses and judges the bytes of a task file, and reports as much as possible at once.
pub fn check(bytes: &[u8]) -> LintReport {
    let draft = TaskFile::parse_draft(bytes);
    let mut findings = draft.findings;
    let parsed = findings.is_empty();
    if let Some(task) = &draft.task {
        let refused: HashSet<Option<u32>> = findings.iter().map(|finding| finding.line).collect();
        // A value that was refused counts as missing, but one finding about its line is enough.
        let news = lint(task).into_iter().filter(|finding| {
            finding.line == Some(task.closing_line) || !refused.contains(&finding.line)
        });
        findings.extend(news);
    }
    sort_and_truncate(&mut findings);
    LintReport {
        findings,
        task: draft.task.filter(|_| parsed),
    }
}
