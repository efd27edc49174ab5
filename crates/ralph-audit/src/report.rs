//! The report: one line per check, and its findings.

use std::fmt::Write as _;

use serde::Serialize;
use utoipa::ToSchema;

/// The number of findings per check that are listed; further ones are only counted.
const MAX_FINDINGS: usize = 20;
/// The length limit of a finding, in characters.
const MAX_CHARS: usize = 400;

/// The report about one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AuditReport {
    pub run: String,
    /// The checks, in a fixed order.
    pub checks: Vec<AuditCheck>,
}

/// A promise and whether it was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AuditCheck {
    /// The short name, such as `I1`.
    pub id: &'static str,
    pub title: &'static str,
    pub status: AuditStatus,
    /// The violations; without any, notes for the reader.
    pub findings: Vec<String>,
}

/// Whether a promise was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuditStatus {
    /// The promise was kept.
    Pass,
    /// The promise was broken.
    Fail,
    /// The promise does not apply yet.
    NotApplicable,
}

impl AuditStatus {
    fn label(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::NotApplicable => "N/A ",
        }
    }
}

impl AuditReport {
    /// Returns whether no promise was broken.
    pub fn is_green(&self) -> bool {
        self.count(AuditStatus::Fail) == 0
    }

    fn count(&self, status: AuditStatus) -> usize {
        let of_status = |check: &&AuditCheck| check.status == status;
        self.checks.iter().filter(of_status).count()
    }

    /// Formats the report as plain text: a line per check, its findings below it, a summary line.
    pub fn render(&self) -> String {
        let mut text = String::new();
        for check in &self.checks {
            let (word, id, title) = (check.status.label(), check.id, check.title);
            writeln!(text, "{word} {id:<3} {title}").expect("writing to a string cannot fail");
            for finding in &check.findings {
                writeln!(text, "         {finding}").expect("writing to a string cannot fail");
            }
        }
        let (passed, failed) = (self.count(AuditStatus::Pass), self.count(AuditStatus::Fail));
        let rest = self.count(AuditStatus::NotApplicable);
        let run = &self.run;
        writeln!(
            text,
            "run {run}: {passed} passed, {failed} failed, {rest} not applicable"
        )
        .expect("writing to a string cannot fail");
        text
    }
}

/// The findings of a check.
#[derive(Debug, Default)]
pub(super) struct Findings {
    failures: Vec<String>,
    omitted: usize,
    notes: Vec<String>,
}

impl Findings {
    /// Adds a violation of the promise.
    pub(super) fn fail(&mut self, finding: impl AsRef<str>) {
        if self.failures.len() < MAX_FINDINGS {
            self.failures.push(sanitized(finding.as_ref()));
        } else {
            self.omitted += 1;
        }
    }

    /// Adds a note that is not a violation.
    pub(super) fn note(&mut self, note: impl AsRef<str>) {
        if self.notes.len() < MAX_FINDINGS {
            self.notes
                .push(format!("note: {}", sanitized(note.as_ref())));
        }
    }
}

/// Names in a journal may come from a model: they must not control a terminal.
fn sanitized(text: &str) -> String {
    let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut kept: String = text.chars().take(MAX_CHARS).map(clean).collect();
    if text.chars().nth(MAX_CHARS).is_some() {
        kept.push('…');
    }
    kept
}

/// The outcome of a check.
#[derive(Debug)]
pub(super) enum AuditOutcome {
    /// The check ran; without failures, the promise was kept.
    Checked(Findings),
    /// The check does not apply, for this reason.
    NotApplicable(&'static str),
}

impl AuditCheck {
    pub(super) fn new(id: &'static str, title: &'static str, outcome: AuditOutcome) -> Self {
        let (status, findings) = match outcome {
            AuditOutcome::NotApplicable(why) => (AuditStatus::NotApplicable, vec![why.to_owned()]),
            AuditOutcome::Checked(found) if found.failures.is_empty() => {
                (AuditStatus::Pass, found.notes)
            }
            AuditOutcome::Checked(found) => (AuditStatus::Fail, merged_findings(found)),
        };
        Self {
            id,
            title,
            status,
            findings,
        }
    }
}

fn merged_findings(found: Findings) -> Vec<String> {
    let mut findings = found.failures;
    if found.omitted > 0 {
        findings.push(format!("and {} more", found.omitted));
    }
    findings.extend(found.notes);
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(id: &'static str, fill: impl FnOnce(&mut Findings)) -> AuditCheck {
        let mut findings = Findings::default();
        fill(&mut findings);
        AuditCheck::new(id, "a promise", AuditOutcome::Checked(findings))
    }

    #[test]
    fn the_report_has_a_line_per_check() {
        let audit = AuditReport {
            run: "r1".into(),
            checks: vec![
                check("I1", |findings| findings.note("a branch is gone")),
                check("I12", |findings| findings.fail("two\nlines\u{1b}[31m")),
                AuditCheck::new("I7", "another", AuditOutcome::NotApplicable("it runs")),
            ],
        };
        assert!(!audit.is_green());
        snapbox::assert_data_eq!(
            audit.render(),
            snapbox::str![[r"
PASS I1  a promise
         note: a branch is gone
FAIL I12 a promise
         two�lines�[31m
N/A  I7  another
         it runs
run r1: 1 passed, 1 failed, 1 not applicable

"]]
        );
        let json = serde_json::to_value(&audit).unwrap();
        assert_eq!(json["checks"][2]["status"], "not_applicable");
    }

    #[test]
    fn findings_have_a_bound() {
        let full = check("I1", |findings| {
            for number in 0..30 {
                findings.fail(format!("{number}{}", "x".repeat(1000)));
            }
        });
        assert_eq!(full.findings.len(), 21);
        assert_eq!(full.findings[20], "and 10 more");
        assert_eq!(full.findings[0].chars().count(), 401);
    }
}
