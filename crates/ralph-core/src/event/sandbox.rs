//! Events of the run's sandboxes.

use serde::{Deserialize, Serialize};

use crate::id::{CommitId, Digest};
use crate::ports::{ExecStatus, SandboxId};

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
    /// The dependencies are being installed in a sandbox.
    SetupStarted { sandbox: SandboxId, command: String },
    /// The dependencies were installed, or copied from an earlier set-up, or could not be installed.
    SetupFinished {
        sandbox: SandboxId,
        command: String,
        /// How the command ended; success if its result was copied.
        ended: ExecStatus,
        duration_ms: u64,
        /// Whether the result of an earlier set-up was copied.
        cached: bool,
        /// Covers the command, the image, and the lockfiles and manifests.
        digest: Digest,
        /// Committed files that the command changed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<String>,
        /// The end of the output, if the command failed.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        output: String,
    },
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
        "setup_started",
        "setup_finished",
        "sandbox_checked",
        "tamper",
    ];
}
