//! File modes, as git writes them into a diff.

use super::error::{PatchError, quote};

/// What a patch makes of a file's mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileMode {
    /// Not executable: `100644`.
    Plain,
    /// Executable: `100755`.
    Executable,
}

impl FileMode {
    /// Parses a mode. A symbolic link or a submodule is no text, so a patch of one is refused.
    pub(super) fn parse(mode: &str) -> Result<Self, PatchError> {
        match mode.trim() {
            "100644" | "100664" | "100600" => Ok(Self::Plain),
            "100755" | "100775" | "100700" => Ok(Self::Executable),
            "120000" => Err(PatchError::Link),
            "160000" => Err(PatchError::Submodule),
            other => Err(PatchError::UnknownMode(quote(other))),
        }
    }
}
