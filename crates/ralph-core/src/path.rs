//! Paths inside a sandbox. A path from a model is parsed into one of these types or rejected;
//! resolving symbolic links is left to the sandbox.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::printable::name_character;

/// The longest accepted path, in bytes.
pub const MAX_PATH_BYTES: usize = 1024;

/// A path relative to the repository, separated by `/`, that does not lead outside.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct WorkspacePath(String);

/// Why a string is not a path inside the repository.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Empty, or only `.` parts and slashes.
    #[error("the path is empty")]
    Empty,
    /// Starts with `/`, `\` or a drive letter.
    #[error("path `{0}` is absolute; paths are relative to the repository")]
    Absolute(String),
    /// Contains `..`.
    #[error("path `{0}` contains `..`; paths must stay inside the repository")]
    Escapes(String),
    /// Contains NUL or another control character.
    #[error("the path contains the control character {}", name_character(*.0))]
    Control(char),
    /// Uses `\` as a separator.
    #[error("path `{0}` contains a backslash; separate with `/`")]
    Backslash(String),
    /// Longer than [`MAX_PATH_BYTES`].
    #[error("the path has {0} bytes, at most {MAX_PATH_BYTES} are allowed")]
    TooLong(usize),
}

impl WorkspacePath {
    /// Parses a path from a model or the user; drops `./` parts and repeated slashes.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text.len() > MAX_PATH_BYTES {
            return Err(PathError::TooLong(text.len()));
        }
        if let Some(control) = text.chars().find(|c| c.is_control()) {
            return Err(PathError::Control(control));
        }
        let drive =
            text.as_bytes().get(1) == Some(&b':') && text.as_bytes()[0].is_ascii_alphabetic();
        if text.starts_with(['/', '\\']) || drive {
            return Err(PathError::Absolute(text.to_owned()));
        }
        if text.contains('\\') {
            return Err(PathError::Backslash(text.to_owned()));
        }
        let parts: Vec<&str> = text
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".")
            .collect();
        if parts.contains(&"..") {
            return Err(PathError::Escapes(text.to_owned()));
        }
        if parts.is_empty() {
            return Err(PathError::Empty);
        }
        Ok(Self(parts.join("/")))
    }

    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the parts between the slashes.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for WorkspacePath {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// A path relative to a sandbox's root, which contains the repository and a separate scratch
/// directory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SandboxPath(String);

impl SandboxPath {
    /// The directory of the repository.
    pub const REPO: &'static str = "repo";
    /// The directory for bundles and other files in transit.
    pub const SCRATCH: &'static str = "scratch";
    /// The home and temporary directories of the running agent session. Below the scratch directory,
    /// because commands cannot create an entry of the sandbox's root.
    pub const SESSION: &'static str = "scratch/session";

    /// Returns the repository's directory.
    pub fn repo() -> Self {
        Self(Self::REPO.into())
    }

    /// Returns a path in the repository.
    pub fn in_repo(path: &WorkspacePath) -> Self {
        Self(format!("{}/{path}", Self::REPO))
    }

    /// Returns the scratch directory.
    pub fn scratch() -> Self {
        Self(Self::SCRATCH.into())
    }

    /// Returns a path in the scratch directory.
    pub fn in_scratch(path: &WorkspacePath) -> Self {
        Self(format!("{}/{path}", Self::SCRATCH))
    }

    /// Returns the directory of the running agent session.
    pub fn session() -> Self {
        Self(Self::SESSION.into())
    }

    /// Returns the path as text, relative to the sandbox's root.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SandboxPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the absolute directories of a `PATH` value. Relative and empty entries depend on the
/// current directory, which is often an untrusted repository.
pub fn absolute_search_path(path: &str) -> String {
    let entries = path.split(':').filter(|entry| entry.starts_with('/'));
    entries.collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_and_empty_entries_of_a_search_path_are_dropped() {
        for (path, absolute) in [
            ("/usr/bin:/bin", "/usr/bin:/bin"),
            (".:/usr/bin:bin:/bin", "/usr/bin:/bin"),
            (":/usr/bin::", "/usr/bin"),
            ("..:./x:~/bin", ""),
            ("", ""),
        ] {
            assert_eq!(absolute_search_path(path), absolute, "{path}");
        }
    }

    #[test]
    fn equivalent_spellings_are_one_path() {
        for text in [
            "src/a.rs",
            "./src/a.rs",
            "src//a.rs",
            "src/./a.rs",
            "src/a.rs/",
        ] {
            assert_eq!(WorkspacePath::parse(text).unwrap().as_str(), "src/a.rs");
        }
        assert_eq!(
            WorkspacePath::parse("a..b/..c").unwrap().as_str(),
            "a..b/..c"
        );
    }

    #[test]
    fn rejects_paths_that_lead_outside() {
        let long = "x/".repeat(2500);
        for text in [
            "../x",
            "/etc/x",
            "a/../../x",
            "a/..",
            "C:\\x",
            "C:/x",
            "\\\\host\\x",
            "a\\b",
            "",
            ".",
            "./",
            "a\0b",
            "a\nb",
            &long,
        ] {
            assert!(WorkspacePath::parse(text).is_err(), "{text:?} was accepted");
        }
    }
}
