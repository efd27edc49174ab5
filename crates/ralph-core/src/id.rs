//! Ids of runs, tasks and commits, and digests. Each is validated once, when it is parsed.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;

use crate::printable::name_character;

/// The id of a run, unique in a state directory and sortable by start time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct RunId(String);

impl RunId {
    /// Creates the id of a run that starts at `at`; `random` distinguishes runs of the same second.
    pub fn new(at: jiff::Timestamp, random: u16) -> Self {
        let second = at.strftime("%y%m%d-%H%M%S");
        Self(format!("{second}-{random:04x}"))
    }

    /// Parses the directory name of a run.
    pub fn parse(text: &str) -> Option<Self> {
        let is_valid = text.len() <= 64
            && !text.is_empty()
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        is_valid.then(|| Self(text.to_owned()))
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The stable id of a task from its front matter. It becomes part of branch and ref names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct TaskId(String);

impl TaskId {
    /// The longest accepted task id.
    pub const MAX_CHARS: usize = 64;

    /// Parses an id of letters, digits, `-`, `_` and single inner dots, at most 64 characters.
    ///
    /// The error names the violated rule.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("is empty".into());
        }
        if text.len() > Self::MAX_CHARS {
            return Err(format!(
                "has {} characters, at most {} are allowed",
                text.len(),
                Self::MAX_CHARS
            ));
        }
        if let Some(bad) = text
            .chars()
            .find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.'))
        {
            return Err(format!(
                "contains {}; letters, digits, `-`, `_` and `.` are allowed",
                name_character(bad)
            ));
        }
        let dotted = text.starts_with('.') || text.ends_with('.') || text.contains("..");
        let lower = text.to_ascii_lowercase();
        let ends_in_lock = std::path::Path::new(&lower)
            .extension()
            .is_some_and(|e| e == "lock");
        if dotted || text.starts_with('-') || ends_in_lock {
            return Err("would not be a valid part of a branch name".into());
        }
        if ["head", "last", "con", "nul", "aux", "prn"].contains(&lower.as_str()) {
            return Err("is a reserved name".into());
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The full hexadecimal id of a git commit.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct CommitId(String);

impl CommitId {
    /// Accepts 40 or 64 lower-case hexadecimal digits, as git prints them.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        (hex && matches!(text.len(), 40 | 64)).then(|| Self(text.to_owned()))
    }

    /// Returns the whole id.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns git's name of the object format with ids of this length.
    pub fn object_format(&self) -> &'static str {
        if self.0.len() == 64 { "sha256" } else { "sha1" }
    }

    /// Returns the first ten digits, for display.
    pub fn short(&self) -> &str {
        &self.0[..10]
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A SHA-256 digest in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// Computes the digest of `bytes`.
    pub fn compute(bytes: &[u8]) -> Self {
        Self::from_sha256(&Sha256::digest(bytes))
    }

    /// Formats the 32 raw bytes of a SHA-256 digest.
    pub fn from_sha256(sha256: &[u8]) -> Self {
        use fmt::Write as _;
        let mut hex = String::with_capacity(64);
        for byte in sha256 {
            write!(hex, "{byte:02x}").expect("writing to a string cannot fail");
        }
        Self(hex)
    }

    /// Returns the digest as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_ids_are_valid_in_branch_names() {
        for good in ["task-001", "a", "A_1.b", "x.y-z"] {
            assert_eq!(TaskId::parse(good).unwrap().as_str(), good);
        }
        let long = "x".repeat(65);
        for bad in [
            "", "../../x", "a b", &long, "HEAD", "last", ".a", "a.", "a..b", "-a", "a.lock", "é",
            "a/b", "a\n",
        ] {
            assert!(TaskId::parse(bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn run_ids_sort_by_time() {
        let early = RunId::new("2026-03-01T10:00:00Z".parse().unwrap(), 0xffff);
        let late = RunId::new("2026-03-01T10:00:01Z".parse().unwrap(), 0);
        assert_eq!(early.as_str(), "260301-100000-ffff");
        assert!(early < late);
        assert_eq!(RunId::parse(early.as_str()), Some(early));
        assert_eq!(RunId::parse("../x"), None);
    }

    #[test]
    fn a_digest_is_sha256() {
        assert_eq!(
            Digest::compute(b"abc").as_str(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
