//! Which error of the port a refused file operation is.

use std::io::{self, ErrorKind};

use cap_std::fs::{Dir, MetadataExt as _};
use ralph_core::path::SandboxPath;
use ralph_core::ports::{SandboxError, SandboxId};

/// An operation on a path of a sandbox, for naming it when it fails.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt<'a> {
    pub(super) id: &'a SandboxId,
    pub(super) dir: &'a Dir,
    pub(super) path: &'a SandboxPath,
    /// The verb, as in "cannot `read` …".
    pub(super) verb: &'static str,
}

impl Attempt<'_> {
    /// Says why the operation failed.
    pub(super) fn refused(&self, source: io::Error) -> SandboxError {
        if is_escape(&source) {
            SandboxError::Escapes(self.path.to_string())
        } else if source.kind() == ErrorKind::NotFound {
            self.missing()
        } else {
            SandboxError::Io {
                doing: format!("{} `{}`", self.verb, self.path),
                source,
            }
        }
    }

    /// Says that there is something, but nothing to read or write.
    pub(super) fn not_regular(&self) -> SandboxError {
        SandboxError::NotRegular(self.path.to_string())
    }

    fn missing(&self) -> SandboxError {
        // The handle outlives the directory; a directory without a name has been removed.
        match self.dir.dir_metadata() {
            Ok(metadata) if metadata.nlink() > 0 => SandboxError::NotFound(self.path.to_string()),
            Ok(_) | Err(_) => SandboxError::Gone(self.id.clone()),
        }
    }
}

/// Tells whether a path was refused because it leads outside. That error is made by `cap-std`, not
/// by the system, so it carries no number.
pub(super) fn is_escape(error: &io::Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}
