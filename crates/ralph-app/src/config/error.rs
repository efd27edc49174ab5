//! Errors of configuration files.

use std::path::{Path, PathBuf};

use ralph_core::net::AllowlistEntry;

use super::regular_file::{RegularFileError, read_regular};
use crate::error::AppError;

/// The reason why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigFileError {
    /// The file cannot be read.
    #[error("cannot read `{}`: {problem}", path.display())]
    Read {
        path: PathBuf,
        problem: RegularFileError,
    },
    /// The file is too large.
    #[error("`{}` has {size} bytes, at most {limit} are read", path.display())]
    TooLarge {
        path: PathBuf,
        /// In bytes.
        size: u64,
        /// In bytes.
        limit: u64,
    },
    /// The file has an invalid value or syntax.
    #[error("`{}` line {line}, column {column}: {why}", path.display())]
    Invalid {
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// Counted in characters from 1.
        column: usize,
        /// The problem, in one line.
        why: String,
    },
    /// The user's settings are in two files.
    #[error("`{}` and `{}` both exist", first.display(), second.display())]
    TwoUserFiles { first: PathBuf, second: PathBuf },
    /// The stored price map cannot be read.
    #[error("cannot use the prices in `{}`: {why}", path.display())]
    StoredPrices { path: PathBuf, why: String },
}

impl ConfigFileError {
    /// Returns the error for invalid text at a byte offset.
    pub(super) fn invalid_at(path: &Path, text: &str, offset: usize, why: String) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Self::Invalid {
            path: path.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            why,
        }
    }

    /// Checks that the entries of a list are valid hosts.
    pub(super) fn require_hosts<'a>(
        (path, text): (&Path, &str),
        hosts: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), Self> {
        for host in hosts {
            AllowlistEntry::parse(host).map_err(|error| {
                let offset = text.find(&format!("\"{host}\"")).unwrap_or_default();
                Self::invalid_at(path, text, offset, error.to_string())
            })?;
        }
        Ok(())
    }
}

/// The size limit of a configuration file, in bytes.
const MAX_BYTES: u64 = 256 * 1024;

/// Returns the text of a configuration file, which must be a regular file below `root` within the
/// size limit.
pub(super) fn read_repository_file(path: &Path, root: &Path) -> Result<String, ConfigFileError> {
    let failed = |problem| ConfigFileError::Read {
        path: path.to_owned(),
        problem,
    };
    let file = read_regular(path, root, MAX_BYTES).map_err(failed)?;
    if file.size > MAX_BYTES {
        return Err(ConfigFileError::TooLarge {
            path: path.to_owned(),
            size: file.size,
            limit: MAX_BYTES,
        });
    }
    String::from_utf8(file.bytes).map_err(|_| {
        let error = std::io::Error::new(std::io::ErrorKind::InvalidData, "it is not UTF-8");
        failed(error.into())
    })
}

/// Returns the text of a file of the user's configuration, which may be a symbolic link to any
/// place.
pub(super) fn read_user_file(path: &Path) -> Result<String, ConfigFileError> {
    read_repository_file(path, Path::new("/"))
}

impl From<ConfigFileError> for AppError {
    fn from(error: ConfigFileError) -> Self {
        let (path, why, fix) = match &error {
            ConfigFileError::TwoUserFiles { .. } => {
                return Self::runtime(
                    "your settings are in two files",
                    error.to_string(),
                    "move all values into one of them, and remove the other",
                );
            }
            ConfigFileError::Read { path, problem } => (path, problem.to_string(), problem.hint()),
            ConfigFileError::TooLarge { path, size, limit } => (
                path,
                format!("it has {size} bytes, at most {limit} are read"),
                "make it shorter",
            ),
            ConfigFileError::Invalid {
                path,
                line,
                column,
                why,
            } => (
                path,
                format!("line {line}, column {column}: {why}"),
                "correct that line",
            ),
            ConfigFileError::StoredPrices { path, why } => (
                path,
                why.clone(),
                "store prices again with `ralph models update-prices`, or remove the file",
            ),
        };
        Self::runtime(format!("cannot use `{}`", path.display()), why, fix)
    }
}
