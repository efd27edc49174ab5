//! Errors after which a caller continues, and which must not be lost.

use std::fmt;

/// Returns the value, or logs the error as a warning. `doing` completes "cannot …".
pub(crate) fn logged<T, E: fmt::Display>(doing: &str, result: Result<T, E>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            tracing::warn!(%error, "cannot {doing}");
            None
        }
    }
}
