//! Errors of the issue tracker as errors of the application.

use ralph_core::ports::{HostError, ScmError};

use crate::error::AppError;

/// Returns the error of a failed operation on an issue tracker.
pub(super) fn tracker_error(what: &str, error: &ScmError) -> AppError {
    let fix = match error {
        ScmError::Host(HostError { kind, .. }) => kind.fix(),
        ScmError::CheckedOut { .. } | ScmError::Io { .. } | ScmError::Damaged { .. } => {
            String::new()
        }
    };
    AppError::runtime(what, error.to_string(), fix)
}
