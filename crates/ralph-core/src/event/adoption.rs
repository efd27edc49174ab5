//! The origin of a run whose directory was lost and rebuilt.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::CommitId;
use crate::money::Usd;
use crate::ports::{SandboxId, TokenUsage};

/// The copy that a lost run was rebuilt from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "snake_case")]
pub enum AdoptionSource {
    /// The files of its sandbox, which the agent could write. There was no journal.
    Sandbox,
    /// The journal and the files under `refs/ralph/<task_id>`.
    StateRef { reference: String, commit: CommitId },
}

/// How a lost run was rebuilt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adoption {
    #[serde(flatten)]
    pub source: AdoptionSource,
    /// The existing sandbox in which the run continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxId>,
    /// The repository, if it is not the one that the run was planned for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// The spending according to files that the agent could write; `None` if the journal has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed: Option<ClaimedSpending>,
    /// Files of finished iterations that the copy does not contain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The number of all missing files, if it is larger than the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_count: Option<usize>,
}

/// The spending of a run according to the metrics in its sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimedSpending {
    /// The highest iteration.
    pub iterations: u32,
    pub duration_ms: u64,
    pub usage: TokenUsage,
    pub cost_usd: Usd,
}

impl fmt::Display for Adoption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            AdoptionSource::Sandbox => f.write_str(
                "unverified origin: rebuilt from the files of its sandbox, which the agent could write",
            ),
            AdoptionSource::StateRef { reference, commit } => write!(
                f,
                "unverified origin: rebuilt from {reference} at commit {}",
                commit.short()
            ),
        }
    }
}
