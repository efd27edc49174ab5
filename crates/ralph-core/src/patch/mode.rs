//! File modes in git's headers.

use super::error::{PatchError, quote};

/// The file mode that a patch sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileMode {
    /// Not executable: `100644`.
    Plain,
    /// Executable: `100755`.
    Executable,
}

impl FileMode {
    /// Parses a mode. Rejects symbolic links and submodules, because they are not text.
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
