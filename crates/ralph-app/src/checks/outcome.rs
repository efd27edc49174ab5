//! Outcomes of checks.

use ralph_core::ports::ProviderProblem;
use ralph_core::secret::Redactor;

use crate::error::{AppError, ErrorDetails};

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
    /// The check found these errors.
    Failed(Vec<AppError>),
    /// The check was not run, for this reason.
    NotRun(String),
}

impl CheckOutcome {
    /// Creates an outcome from the problems of a check, or a passed one with the given text if
    /// there are none.
    pub fn from_problems(problems: Vec<ProviderProblem>, seen: impl FnOnce() -> String) -> Self {
        Self::from_errors(problems.into_iter().map(AppError::from).collect(), seen)
    }

    /// Creates an outcome from the errors of a check, or a passed one with the given text if there
    /// are none.
    pub fn from_errors(errors: Vec<AppError>, seen: impl FnOnce() -> String) -> Self {
        if errors.is_empty() {
            Self::Passed(seen())
        } else {
            Self::Failed(errors)
        }
    }

    /// Creates the outcome of a check that found one problem.
    pub fn failed(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::Failed(vec![AppError::runtime(what, "", fix)])
    }

    /// Returns the outcome without the errors of earlier checks, and adds its own to them.
    #[must_use]
    pub fn without(self, reported: &mut Vec<AppError>) -> Self {
        let Self::Failed(errors) = self else {
            return self;
        };
        let (known, new): (Vec<_>, Vec<_>) = errors
            .into_iter()
            .partition(|error| reported.contains(error));
        reported.extend(new.iter().cloned());
        match known.first() {
            Some(error) if new.is_empty() => Self::NotRun(error.what.clone()),
            Some(_) | None => Self::Failed(new),
        }
    }

    /// Returns the outcome with secrets redacted: typed or configured text may contain one.
    #[must_use]
    pub fn redacted(self, redactor: &Redactor) -> Self {
        let clean = |text: String| redactor.redact(&text).into_owned();
        match self {
            Self::Passed(seen) => Self::Passed(clean(seen)),
            Self::Failed(errors) => {
                let errors = errors.into_iter().map(|error| error.redacted(redactor));
                Self::Failed(errors.collect())
            }
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
        AppError::from(problem).into()
    }
}

impl From<AppError> for CheckOutcome {
    fn from(mut error: AppError) -> Self {
        let details = std::mem::take(&mut *error.details);
        let others = match details {
            ErrorDetails::Others(others) => others,
            details @ (ErrorDetails::None
            | ErrorDetails::Findings { .. }
            | ErrorDetails::BuildLog(_)) => {
                *error.details = details;
                Vec::new()
            }
        };
        Self::Failed([error].into_iter().chain(others).collect())
    }
}
