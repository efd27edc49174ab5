//! Git operations that rebuild a lost run.

use std::path::Path;

use ralph_core::id::CommitId;
use ralph_core::ports::Exec;

use super::program::successful_stdout;
use super::sandbox::{SandboxGit, TIMEOUT};
use super::{GitError, HostRepo, bounded};
use crate::durable;
use crate::error::RunError;

/// The most commits of the base branch among which a base is searched.
const MAX_HISTORY: &str = "--max-count=100000";
/// The entries of a snapshot.
const SNAPSHOT_ENTRIES: [&str; 7] = [
    "journal.jsonl",
    "ralph_task.md",
    "contracts",
    "files",
    "egress.jsonl",
    "iterations",
    "snapshot.json",
];
/// The limit of all files of a snapshot together; ralph saves less.
const MAX_SNAPSHOT_BYTES: u64 = 256 << 20;

impl HostRepo {
    /// Returns whether a ref of a remote has commits that a commit does not descend from.
    pub(crate) async fn has_other_ref(
        &self,
        remote: &str,
        reference: &str,
        commit: &CommitId,
    ) -> Result<bool, GitError> {
        let Some(current) = self.remote_ref(remote, reference).await? else {
            return Ok(false);
        };
        let ancestor = [
            "merge-base",
            "--is-ancestor",
            current.as_str(),
            commit.as_str(),
        ];
        // An unknown commit is an error of git.
        Ok(self.run(&ancestor).await.is_err())
    }

    /// Returns the commits of the base branch, newest first.
    pub(crate) async fn start_history(&self) -> Result<Vec<String>, GitError> {
        let text = self.run(&["rev-list", MAX_HISTORY, "refs/start"]).await?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Fetches a snapshot into a repository, which is created if necessary.
    pub(crate) async fn fetch_snapshot(
        &self,
        source: &str,
        reference: &str,
        commit: &CommitId,
    ) -> Result<(), GitError> {
        durable::create_dir(self.path())?;
        let format = format!("--object-format={}", commit.object_format());
        self.run(&["init", "--quiet", "--bare", "--template=", &format, "."])
            .await?;
        let refspec = format!("+{reference}:{reference}");
        let fetch = ["fetch", "--quiet", "--no-tags", source, &refspec];
        self.run_with_remote(source, &fetch).await.map(drop)
    }

    /// Writes the files of a snapshot into a directory. Anything but the regular files that ralph
    /// saves is refused.
    pub(crate) async fn check_out_snapshot(
        &self,
        commit: &CommitId,
        directory: &Path,
    ) -> Result<(), GitError> {
        let listed = self
            .run(&["ls-tree", "-r", "-z", "--long", commit.as_str()])
            .await?;
        let mut total = 0_u64;
        for entry in listed.split('\0').filter(|entry| !entry.is_empty()) {
            let (meta, path) = entry.split_once('\t').unwrap_or((entry, ""));
            let mut fields = meta.split_whitespace();
            let is_file = matches!(fields.next(), Some("100644" | "100755"));
            let size = fields.nth(2).unwrap_or_default();
            total = total.saturating_add(size.parse::<u64>().unwrap_or(u64::MAX));
            let top = path.split('/').next().unwrap_or_default();
            if !is_file || !SNAPSHOT_ENTRIES.contains(&top) || total > MAX_SNAPSHOT_BYTES {
                return Err(GitError::Unexpected {
                    command: "ls-tree".to_owned(),
                    output: format!("`{path}` does not belong in a snapshot"),
                });
            }
        }
        let index = self.path().join("snapshot.index");
        durable::remove_leftover(&index);
        let checkout = ["checkout-index", "--all", "--force", "--quiet"];
        for args in [&["read-tree", commit.as_str()][..], &checkout] {
            let mut command = self.git().command(directory);
            command
                .env("GIT_DIR", self.path())
                .env("GIT_WORK_TREE", directory)
                .env("GIT_INDEX_FILE", &index)
                .args(args);
            let output = bounded::output(&mut command, args[0], b"").await?;
            successful_stdout(args[0], &output)?;
        }
        durable::remove_leftover(&index);
        Ok(durable::sync_filesystem(directory)?)
    }

    /// Fetches the remote-tracking branches of another repository that have a name.
    pub(crate) async fn recover_from_remotes_of(
        &self,
        source: &str,
        branch: &str,
    ) -> Result<(), GitError> {
        let refspec = format!("+refs/remotes/*/{branch}:refs/recovered-from/*/{branch}");
        let fetch = ["fetch", "--quiet", "--no-tags", source, &refspec];
        self.run_with_remote(source, &fetch).await.map(drop)
    }
}

impl SandboxGit<'_> {
    /// Returns the name of the checked-out branch, if there is one.
    pub(crate) async fn checked_out_branch(&self) -> Result<Option<String>, RunError> {
        let args = ["git", "symbolic-ref", "--quiet", "--short", "HEAD"];
        let output = self.exec(Exec::argv(args, TIMEOUT)).await?;
        let name = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok((output.ended.is_success() && !name.is_empty()).then_some(name))
    }

    /// Returns the commit of a branch, if it exists.
    pub(crate) async fn branch_commit(&self, branch: &str) -> Result<Option<CommitId>, RunError> {
        let revision = format!("refs/heads/{branch}");
        let args = ["git", "rev-parse", "--verify", "--quiet", &revision];
        let output = self.exec(Exec::argv(args, TIMEOUT)).await?;
        Ok(CommitId::parse(
            String::from_utf8_lossy(&output.stdout).trim(),
        ))
    }

    /// Returns the checked-out history, newest first. A damaged repository has none.
    pub(crate) async fn commits(&self, count: usize) -> Result<Vec<CommitId>, RunError> {
        let count = format!("--max-count={count}");
        let args = ["git", "rev-list", &count, "HEAD"];
        let output = self.exec(Exec::argv(args, TIMEOUT)).await?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(text.lines().filter_map(CommitId::parse).collect())
    }
}
