//! What commits say and change, one by one: a thing that one commit adds and the next removes is
//! still on the branch.

use std::path::Path;
use std::process::Stdio;

use ralph_core::id::CommitId;
use tokio::io::AsyncReadExt as _;

use super::{GitError, HostRepo};
use crate::durable;

/// The words and the changes of some commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// Names, addresses and messages.
    pub words: Vec<u8>,
    /// The patch of every commit.
    pub patches: Vec<u8>,
}

impl HostRepo {
    /// Reads the commits after `from` up to `to`; none if they are larger than `limit`.
    pub async fn history(
        &self,
        from: &CommitId,
        to: &CommitId,
        limit: u64,
    ) -> Result<Option<History>, GitError> {
        let range = format!("{from}..{to}");
        let words = ["log", "--format=%an%n%ae%n%cn%n%ce%n%B", &range];
        let patches = [
            "log",
            "--format=",
            "--patch",
            "-m",
            "--text",
            "--no-renames",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            &range,
        ];
        let words = self.read(&words, limit).await?;
        let patches = self.read(&patches, limit).await?;
        Ok(words
            .zip(patches)
            .map(|(words, patches)| History { words, patches }))
    }

    /// Reads the commits of a bundle without taking them in. `apart` is a directory for their objects,
    /// gone again when this returns.
    pub async fn history_in(
        &self,
        bundle: &Path,
        apart: &Path,
        (from, to): (&CommitId, &CommitId),
        limit: u64,
    ) -> Result<Option<History>, GitError> {
        std::fs::remove_dir_all(apart).ok();
        durable::make_dir(apart)?;
        let repo = self.apart(apart.to_owned());
        let args = ["bundle".as_ref(), "unbundle".as_ref(), bundle.as_os_str()];
        let history = match repo.run(&args).await {
            Ok(_) => repo.history(from, to, limit).await,
            Err(error) => Err(error),
        };
        std::fs::remove_dir_all(apart).ok();
        history
    }

    /// Returns what a command prints; none if that is more than `limit` bytes.
    async fn read(&self, args: &[&str], limit: u64) -> Result<Option<Vec<u8>>, GitError> {
        let mut child = self
            .command()
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(GitError::Missing)?;
        let mut bytes = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            stdout
                .take(limit + 1)
                .read_to_end(&mut bytes)
                .await
                .map_err(GitError::Missing)?;
        }
        if bytes.len() as u64 > limit {
            child.kill().await.ok();
            return Ok(None);
        }
        let status = child.wait().await.map_err(GitError::Missing)?;
        if status.success() {
            return Ok(Some(bytes));
        }
        Err(GitError::Failed {
            command: args.first().copied().unwrap_or_default().to_owned(),
            message: status.to_string(),
        })
    }
}
