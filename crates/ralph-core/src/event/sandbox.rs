//! Events of the run's sandboxes.

use serde::{Deserialize, Serialize};

use crate::id::CommitId;
use crate::ports::SandboxId;

/// The purpose of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxPurpose {
    /// Runs the commands of the model or agent.
    Work,
    /// Verifies a commit.
    CleanRoom,
}

/// Sandboxes are created, prepared, inspected and removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SandboxEvent {
    /// A sandbox was created.
    SandboxCreated {
        sandbox: SandboxId,
        purpose: SandboxPurpose,
    },
    /// A sandbox was removed.
    SandboxRemoved { sandbox: SandboxId },
    /// The repository is in the sandbox, on its branch.
    WorkspaceReady { branch: String, head: CommitId },
    /// The isolation of the sandbox was checked from inside, before work continues there.
    SandboxChecked {
        /// The observations, each in a few words.
        seen: Vec<String>,
        duration_ms: u64,
    },
    /// A file of the runner was changed in the sandbox, and was restored.
    Tamper {
        iteration: u32,
        path: String,
        finding: String,
    },
}

impl SandboxEvent {
    pub(super) const TYPES: &[&str] = &[
        "sandbox_created",
        "sandbox_removed",
        "workspace_ready",
        "sandbox_checked",
        "tamper",
    ];
}
