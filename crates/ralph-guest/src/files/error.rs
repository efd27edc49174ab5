//! Errors of confined file operations.

use std::io::{self, ErrorKind};

/// The reason a file operation was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfinedFileError {
    /// The path or a link in it leads outside the directory.
    #[error("the path leads outside the directory")]
    Escapes,
    /// The entry is not a regular file.
    #[error("it is not a regular file")]
    NotRegular,
    /// The entry does not exist.
    #[error("it does not exist")]
    NotFound,
    /// The system reported an error.
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for ConfinedFileError {
    fn from(error: io::Error) -> Self {
        if is_escape(&error) {
            Self::Escapes
        } else if error.kind() == ErrorKind::NotFound {
            Self::NotFound
        } else {
            Self::Io(error)
        }
    }
}

/// Returns whether a path was refused because it leads outside. `cap-std` creates that error
/// itself, so it has no error number.
pub fn is_escape(error: &io::Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}
