//! Why a file operation was refused.

use std::io::{self, ErrorKind};

/// Why a file operation was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfinedFileError {
    /// The path or a link on the way leads outside.
    #[error("the path leads outside")]
    Escapes,
    /// There is something, but no regular file or directory.
    #[error("it is not a regular file")]
    NotRegular,
    /// There is nothing.
    #[error("it does not exist")]
    NotFound,
    /// The system refused.
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

/// Tells whether a path was refused because it leads outside. That error is made by `cap-std`, not
/// by the system, so it carries no number.
pub fn is_escape(error: &io::Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}
