//! Exports a run's branch for the user: a checkout without any configuration by the agent.

use std::ffi::OsStr;
use std::path::Path;

use ralph_core::id::CommitId;

use super::program::successful_stdout;
use super::{GitError, HostRepo, bounded};

/// The largest patch that is written.
const MAX_PATCH: u64 = 256 << 20;

impl HostRepo {
    /// Clones a branch into an empty directory. The clone has ralph's configuration, no hooks and
    /// no remote; links are written as plain files that contain their targets.
    pub async fn export(&self, branch: &str, directory: &Path) -> Result<(), GitError> {
        let mut clone = self.git().command(directory);
        let args: [&OsStr; 14] = [
            "clone".as_ref(),
            "--quiet".as_ref(),
            "--no-local".as_ref(),
            "--template=".as_ref(),
            "--single-branch".as_ref(),
            "--no-tags".as_ref(),
            "--config".as_ref(),
            "core.symlinks=false".as_ref(),
            "--config".as_ref(),
            "core.hooksPath=/dev/null".as_ref(),
            "--branch".as_ref(),
            branch.as_ref(),
            self.path().as_ref(),
            directory.as_ref(),
        ];
        let cloned = bounded::output(clone.args(args), "clone", b"").await?;
        successful_stdout("clone", &cloned)?;
        let mut remove_remote = self.git().command(directory);
        let args = ["remote", "remove", "origin"];
        let removed = bounded::output(remove_remote.args(args), "remote", b"").await?;
        successful_stdout("remote", &removed).map(drop)
    }

    /// Returns the changes between two commits as a patch for `git apply`.
    pub async fn patch(&self, from: &CommitId, to: &CommitId) -> Result<Vec<u8>, GitError> {
        let args = [
            "diff",
            "--binary",
            "--full-index",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            from.as_str(),
            to.as_str(),
        ];
        let output = bounded::output_up_to(self.command().args(args), "diff", MAX_PATCH).await?;
        let output = output.ok_or_else(|| GitError::Failed {
            command: "diff".into(),
            message: format!("the patch has more than {} MiB", MAX_PATCH >> 20),
        })?;
        successful_stdout("diff", &output)?;
        Ok(output.stdout)
    }
}
