//! What a repository's files ask for beyond what a repository may decide.

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
    /// Runs whose model comes from a profile.
    Profiles,
    /// Runs of an agent's program.
    Agents,
}

/// A value that needs the user's approval. Its identity is its content: another value of the same key
/// is another proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustProposal {
    /// The file, as messages name it.
    pub file: String,
    /// The key.
    pub key: String,
    /// The value, as text.
    pub value: String,
    /// What it would allow.
    pub allows: String,
    /// The runs for which it has an effect.
    pub scope: TrustScope,
}

/// What is stored of a proposal that the user approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovedProposal {
    /// The file.
    pub file: String,
    /// The key.
    pub key: String,
    /// The value, as text.
    pub value: String,
}

/// A value that only the user's own configuration may set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserOnlyValue {
    /// The file.
    pub file: String,
    /// The key.
    pub key: String,
    /// The value, as text.
    pub value: String,
    /// What the value would allow.
    pub allows: String,
    /// The runs for which it would have an effect.
    pub scope: TrustScope,
    /// The file of the user's configuration directory that may set it.
    pub user_file: Option<&'static str>,
}

/// The longest value that is shown and stored as it is; a longer one is stored with its digest.
const MAX_VALUE_CHARS: usize = 200;

impl TrustProposal {
    /// Describes a value of a key whose row asks for approval.
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

    /// Returns what is stored when the user approves it.
    pub fn approved(&self) -> ApprovedProposal {
        ApprovedProposal {
            file: self.file.clone(),
            key: self.key.clone(),
            value: self.value.clone(),
        }
    }
}

impl UserOnlyValue {
    /// Describes a value of a key that only the user's configuration may set.
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

/// Returns a value at a length that fits into a list and still has its whole content as identity.
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
