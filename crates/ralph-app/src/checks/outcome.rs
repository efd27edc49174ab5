//! Outcomes of checks as values.

use ralph_core::ports::ProviderProblem;
use ralph_core::secret::Redactor;

use crate::error::AppError;

/// Receives checks as they are made.
pub trait CheckSink: Send {
    /// Takes a finished check.
    fn add(&mut self, name: &'static str, outcome: CheckOutcome) -> Result<(), AppError>;

    /// Takes a remark that is not a check.
    fn note(&mut self, text: String) -> Result<(), AppError>;
}

/// How a check went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckOutcome {
    /// Everything is as it should be, with what was seen.
    Passed(String),
    /// These things are wrong.
    Failed(Vec<ProviderProblem>),
    /// It could not be made, for this reason.
    NotRun(String),
}

impl CheckOutcome {
    /// Makes the outcome of a check that finds problems, or none and then this.
    pub fn from_problems(problems: Vec<ProviderProblem>, seen: impl FnOnce() -> String) -> Self {
        if problems.is_empty() {
            Self::Passed(seen())
        } else {
            Self::Failed(problems)
        }
    }

    /// Makes the outcome of a check that found one problem.
    pub fn failed(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::Failed(vec![ProviderProblem {
            what: what.into(),
            fix: fix.into(),
        }])
    }

    /// Returns the outcome without secrets: what was typed or configured may hold one.
    #[must_use]
    pub fn redacted(self, redactor: &Redactor) -> Self {
        let clean = |text: String| redactor.redact(&text).into_owned();
        match self {
            Self::Passed(seen) => Self::Passed(clean(seen)),
            Self::Failed(problems) => Self::Failed(
                problems
                    .into_iter()
                    .map(|problem| ProviderProblem {
                        what: clean(problem.what),
                        fix: clean(problem.fix),
                    })
                    .collect(),
            ),
            Self::NotRun(why) => Self::NotRun(clean(why)),
        }
    }

    /// Tells whether something is wrong.
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_))
    }
}

impl From<ProviderProblem> for CheckOutcome {
    fn from(problem: ProviderProblem) -> Self {
        Self::Failed(vec![problem])
    }
}

impl From<AppError> for CheckOutcome {
    fn from(error: AppError) -> Self {
        let what = if error.why.is_empty() {
            error.what
        } else {
            format!("{}: {}", error.what, error.why)
        };
        Self::failed(what, error.fix)
    }
}
