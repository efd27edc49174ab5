//! Outcomes of checks.

use ralph_core::ports::ProviderProblem;
use ralph_core::secret::Redactor;

use crate::error::AppError;

/// Receives the outcomes of checks while they run.
pub trait CheckSink: Send {
    /// Adds a finished check.
    fn add(&mut self, name: &'static str, outcome: CheckOutcome) -> Result<(), AppError>;

    /// Adds a note that is not a check.
    fn note(&mut self, text: String) -> Result<(), AppError>;
}

/// The outcome of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckOutcome {
    /// The check passed; the text describes the observation.
    Passed(String),
    /// The check found these problems.
    Failed(Vec<ProviderProblem>),
    /// The check was not run, for this reason.
    NotRun(String),
}

impl CheckOutcome {
    /// Creates an outcome from the problems of a check, or a passed one with the given text if
    /// there are none.
    pub fn from_problems(problems: Vec<ProviderProblem>, seen: impl FnOnce() -> String) -> Self {
        if problems.is_empty() {
            Self::Passed(seen())
        } else {
            Self::Failed(problems)
        }
    }

    /// Creates the outcome of a check that found one problem.
    pub fn failed(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::Failed(vec![ProviderProblem {
            what: what.into(),
            fix: fix.into(),
        }])
    }

    /// Returns the outcome with secrets redacted: typed or configured text may contain one.
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

    /// Returns whether the check failed.
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
