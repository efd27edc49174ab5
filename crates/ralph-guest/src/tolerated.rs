//! Functions for errors that the caller can ignore; each use explains why.

/// Ignores the error of a step that is an attempt by nature, such as a signal to a process that may
/// have ended.
pub fn best_effort<T, E>(_result: Result<T, E>) {}

/// Returns a value that the system may not offer, such as a file of `/proc` or a number in it.
pub fn available<T, E>(result: Result<T, E>) -> Option<T> {
    let Ok(value) = result else {
        return None;
    };
    Some(value)
}
