//! What can be wrong with a configuration file.

use std::path::{Path, PathBuf};

use ralph_core::net::AllowlistEntry;

use super::regular_file::{RegularFileError, read_regular};
use crate::error::AppError;

/// Why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigFileError {
    /// It cannot be read.
    #[error("cannot read `{}`: {problem}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        problem: RegularFileError,
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
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The column, counted in characters from 1.
        column: usize,
        /// What is wrong there, in one line.
        why: String,
    },
    /// The stored price map cannot be read.
    #[error("cannot use the prices in `{}`: {why}", path.display())]
    StoredPrices {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
}

impl ConfigFileError {
    /// Something that has no meaning, at a byte of a file's text.
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

    /// Checks that the entries of a list in a file's text can be hosts.
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

/// The largest configuration file that is read.
const MAX_BYTES: u64 = 256 * 1024;

/// Returns the text of a configuration file that is a regular file below `root`, of a sane size.
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

/// Returns the text of a file of the user's own configuration, which may be a link to anywhere.
pub(super) fn read_user_file(path: &Path) -> Result<String, ConfigFileError> {
    read_repository_file(path, Path::new("/"))
}

impl From<ConfigFileError> for AppError {
    fn from(error: ConfigFileError) -> Self {
        let (path, why, fix) = match &error {
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
