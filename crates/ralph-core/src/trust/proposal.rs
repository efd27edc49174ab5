//! Values in a repository's files that exceed the repository's authority.

use serde::{Deserialize, Serialize};

use super::{TrustFile, TrustRule};
use crate::id::Digest;

/// The runs for which a value has an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustScope {
    /// All runs.
    Every,
    /// Runs in containers.
    Containers,
    /// Runs with a model from a profile.
    Profiles,
    /// Runs with a coding agent.
    Agents,
}

/// A value that needs the user's approval. It is identified by its content: another value of the
/// same key is another proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustProposal {
    /// The name used in messages.
    pub file: String,
    pub key: String,
    pub value: String,
    pub allows: String,
    pub scope: TrustScope,
}

/// The stored form of a proposal that the user approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovedProposal {
    pub file: String,
    pub key: String,
    pub value: String,
}

/// A value that only the user's own configuration may set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserOnlyValue {
    pub file: String,
    pub key: String,
    pub value: String,
    pub allows: String,
    pub scope: TrustScope,
    /// The file in the user's configuration directory that may set it.
    pub user_file: Option<&'static str>,
}

/// The longest value that is shown and stored in full; a longer one is cut and gets a digest.
const MAX_VALUE_CHARS: usize = 200;

impl TrustProposal {
    /// Describes a value that requires approval by its rule.
    pub fn new(file: impl Into<String>, key: &str, value: &str, rule: &TrustRule) -> Self {
        let value = bounded(value);
        Self {
            file: file.into(),
            key: key.to_owned(),
            allows: rule.allows.replace("{value}", &value),
            value,
            scope: rule.scope,
        }
    }

    /// Returns the form to store after the user's approval.
    pub fn approved(&self) -> ApprovedProposal {
        ApprovedProposal {
            file: self.file.clone(),
            key: self.key.clone(),
            value: self.value.clone(),
        }
    }
}

impl UserOnlyValue {
    /// Describes a value that only the user's configuration may set.
    pub fn new(
        file: impl Into<String>,
        kind: TrustFile,
        key: &str,
        value: &str,
        rule: &TrustRule,
    ) -> Self {
        let value = bounded(value);
        Self {
            file: file.into(),
            key: key.to_owned(),
            allows: rule.allows.replace("{value}", &value),
            value,
            scope: rule.scope,
            user_file: kind.user_file(),
        }
    }
}

/// Shortens a value for display; a digest preserves the identity of its whole content.
fn bounded(value: &str) -> String {
    match value.char_indices().nth(MAX_VALUE_CHARS) {
        Some((end, _)) => format!(
            "{}… sha256:{}",
            &value[..end],
            Digest::compute(value.as_bytes())
        ),
        None => value.to_owned(),
    }
}
