//! The results of checks as JSON.

use std::fmt;

use serde::Serialize;
use utoipa::ToSchema;

use super::outcome::CheckOutcome;

/// The results of all checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CheckSummary {
    /// Whether every check ran and passed.
    pub ok: bool,
    pub checks: Vec<CheckEntry>,
    pub notes: Vec<String>,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CheckEntry {
    pub name: String,
    pub status: CheckStatus,
    /// What the check observed, or why it was not run.
    pub detail: Option<String>,
    pub problems: Vec<CheckProblem>,
}

/// Whether a check passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    Pass,
    Fail,
    NotRun,
}

/// A problem that a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CheckProblem {
    pub what: String,
    pub fix: String,
}

impl CheckEntry {
    /// Describes an outcome.
    pub fn new(name: &str, outcome: &CheckOutcome) -> Self {
        let (status, detail, problems) = match outcome {
            CheckOutcome::Passed(detail) => (CheckStatus::Pass, Some(detail.clone()), Vec::new()),
            CheckOutcome::Failed(errors) => {
                let problems = errors.iter().map(|error| CheckProblem {
                    what: error.cause(),
                    fix: error.fix.clone(),
                });
                (CheckStatus::Fail, None, problems.collect())
            }
            CheckOutcome::NotRun(why) => (CheckStatus::NotRun, Some(why.clone()), Vec::new()),
        };
        Self {
            name: name.to_owned(),
            status,
            detail,
            problems,
        }
    }
}

/// The numbers of checks by outcome.
#[derive(Debug, Default)]
pub struct CheckCounts {
    passed: usize,
    failed: usize,
    not_run: usize,
}

impl CheckCounts {
    /// Counts outcomes.
    pub fn from_outcomes<'a>(outcomes: impl Iterator<Item = &'a CheckOutcome>) -> Self {
        let mut counts = Self::default();
        for outcome in outcomes {
            match outcome {
                CheckOutcome::Passed(_) => counts.passed += 1,
                CheckOutcome::Failed(_) => counts.failed += 1,
                CheckOutcome::NotRun(_) => counts.not_run += 1,
            }
        }
        counts
    }

    /// Returns whether every check ran and passed.
    pub fn is_green(&self) -> bool {
        self.failed == 0 && self.not_run == 0
    }
}

impl fmt::Display for CheckCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            passed,
            failed,
            not_run,
        } = self;
        let all = passed + failed + not_run;
        if self.is_green() {
            return write!(f, "all {all} checks passed");
        }
        write!(f, "{failed}/{all} checks failed")?;
        match not_run {
            0 => Ok(()),
            not_run => write!(f, ", {not_run} not run"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::AppError;

    #[test]
    fn the_summary_counts_failures_and_checks_that_were_not_run() {
        let passed = || CheckOutcome::Passed(String::new());
        let failed = || CheckOutcome::Failed(Vec::new());
        let not_run = || CheckOutcome::NotRun(String::new());
        for (outcomes, summary) in [
            (vec![passed(), passed()], "all 2 checks passed"),
            (vec![passed(), failed()], "1/2 checks failed"),
            (vec![passed(), not_run()], "0/2 checks failed, 1 not run"),
            (
                vec![failed(), not_run(), not_run()],
                "1/3 checks failed, 2 not run",
            ),
        ] {
            let counts = CheckCounts::from_outcomes(outcomes.iter());
            assert_eq!(counts.to_string(), summary);
        }
    }

    #[test]
    fn an_entry_has_the_problems_of_its_check() {
        let failed = CheckOutcome::Failed(vec![AppError::runtime("a", "b", "fix it")]);
        let not_run = CheckOutcome::NotRun("no engine answers".into());
        let entries = [
            CheckEntry::new("git", &failed),
            CheckEntry::new("image", &not_run),
        ];
        let expected = json!([
            {
                "name": "git", "status": "fail", "detail": null,
                "problems": [{"what": "a: b", "fix": "fix it"}],
            },
            {"name": "image", "status": "not_run", "detail": "no engine answers", "problems": []},
        ]);
        assert_eq!(serde_json::to_value(entries).unwrap(), expected);
    }
}
