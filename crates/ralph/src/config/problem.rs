//! What can be wrong with a configuration file.

use std::io;
use std::path::{Path, PathBuf};

/// Why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is larger than any configuration file should be.
    #[error("`{}` has {size} bytes, at most {limit} are read", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// It says something that has no meaning.
    #[error("`{}` line {line}, column {column}: {why}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The column, counted in characters from 1.
        column: usize,
        /// What is wrong there, in one line.
        why: String,
    },
}

impl ConfigError {
    /// Something that has no meaning, at a byte of a file's text.
    pub(super) fn at(path: &Path, text: &str, offset: usize, why: String) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Self::Wrong {
            path: path.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            why,
        }
    }
}

/// The largest configuration file that is read.
const MAX_BYTES: u64 = 256 * 1024;

/// Returns the text of a configuration file of a sane size.
pub(super) fn read(path: &Path) -> Result<String, ConfigError> {
    let failed = |source| ConfigError::Read {
        path: path.to_owned(),
        source,
    };
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if size > MAX_BYTES {
        return Err(ConfigError::TooLarge {
            path: path.to_owned(),
            size,
            limit: MAX_BYTES,
        });
    }
    std::fs::read_to_string(path).map_err(failed)
}
