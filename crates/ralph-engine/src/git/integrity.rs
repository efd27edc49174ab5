//! Repositories after a power cut: checks whether commits are complete, and recovers missing ones.

use std::path::Path;

use ralph_core::id::CommitId;
use ralph_core::ports::Exec;
use tokio::process::Command;

use super::sandbox::{SandboxGit, TIMEOUT};
use super::{GitError, HostRepo, bounded};
use crate::durable::{self, StoreError};
use crate::error::RunError;

/// The ref for recovered commits.
const RECOVERED: &str = "refs/recovered";

impl HostRepo {
    /// Returns whether the repository has a base commit with its files and every commit from there
    /// to `head`. A failing git is an error, because it proves nothing about the repository.
    pub(crate) async fn is_complete(
        &self,
        base: &CommitId,
        head: &CommitId,
    ) -> Result<bool, GitError> {
        if !self.path().join("objects").is_dir() {
            return Ok(false);
        }
        // The base has many files, so only their presence is checked; objects that the run added
        // are read.
        Ok(self.has_files_of(base).await?
            && has_all_objects(&mut verify_objects_command(self.command(), base, head)).await?)
    }

    /// Returns whether the repository has a commit and all of its files.
    pub(super) async fn has_files_of(&self, commit: &CommitId) -> Result<bool, GitError> {
        let args = ["rev-list", "--objects", "--no-walk", "--quiet"];
        has_all_objects(self.command().args(args).arg(commit.as_str())).await
    }

    /// Sets a branch to a commit, whatever its current commit is.
    pub(crate) async fn set_branch(&self, branch: &str, commit: &CommitId) -> Result<(), GitError> {
        if self.head(branch).await.is_ok_and(|head| head == *commit) {
            return Ok(());
        }
        let reference = format!("refs/heads/{branch}");
        if self
            .run(&["update-ref", &reference, commit.as_str()])
            .await
            .is_err()
        {
            // An empty ref cannot be updated. No other process writes to this repository.
            durable::remove_leftover(&self.path().join(&reference));
            self.run(&["update-ref", &reference, commit.as_str()])
                .await?;
        }
        Ok(self.sync()?)
    }

    /// Moves a damaged repository to another directory.
    pub(crate) fn move_aside(&self, to: &Path) -> Result<(), StoreError> {
        if !self.path().exists() {
            return Ok(());
        }
        to.parent().map_or(Ok(()), durable::create_dir)?;
        durable::rename(self.path(), to)
    }

    /// Fetches a branch of another repository, if it exists.
    pub(crate) async fn recover_from(&self, source: &str, branch: &str) -> Result<(), GitError> {
        let reference = format!("refs/heads/{branch}");
        if self.remote_ref(source, &reference).await?.is_none() {
            return Ok(());
        }
        let refspec = format!("+{reference}:{RECOVERED}");
        let fetch = ["fetch", "--quiet", "--no-tags", source, &refspec];
        self.run_with_remote(source, &fetch).await.map(drop)
    }

    /// Imports objects from a pack. Each is checked, and ids are digests, so the pack can add
    /// nothing to a commit with a known id.
    pub(crate) async fn recover_from_pack(&self, pack: &[u8]) -> Result<(), GitError> {
        let args = ["index-pack", "--stdin", "--fix-thin", "--strict"];
        self.run_with_input(&args, pack).await.map(drop)
    }

    /// Deletes a branch of a repository on this machine if its head is a commit of this run whose
    /// objects are missing or damaged there. The next push then sends them again.
    pub(crate) async fn delete_damaged_branch(
        &self,
        remote: &str,
        reference: &str,
        base: &CommitId,
    ) -> Result<(), GitError> {
        let target = Path::new(remote);
        if !target.is_absolute() {
            return Ok(());
        }
        let git = || self.git().command(target);
        let mut rev_parse = git();
        rev_parse.args(["rev-parse", "--verify", "--quiet", reference]);
        let found = bounded::output(&mut rev_parse, "rev-parse", b"").await?;
        let found = CommitId::parse(String::from_utf8_lossy(&found.stdout).trim());
        let Some(found) = found else {
            return Ok(());
        };
        if !self.has_commit(&found).await
            || has_all_objects(&mut verify_objects_command(git(), base, &found)).await?
        {
            return Ok(());
        }
        let mut delete = git();
        delete.args(["update-ref", "-d", reference, found.as_str()]);
        let deleted = bounded::output(&mut delete, "update-ref", b"").await?;
        super::program::successful_stdout("update-ref", &deleted).map(drop)
    }
}

impl SandboxGit<'_> {
    /// Returns every object from a base commit to `head` as a pack.
    pub(crate) async fn pack(&self, base: &CommitId, head: &CommitId) -> Result<Vec<u8>, RunError> {
        self.pack_revisions(format!("{head}\n^{base}\n")).await
    }

    /// Returns a commit with its whole history as a pack.
    pub(crate) async fn pack_history(&self, head: &CommitId) -> Result<Vec<u8>, RunError> {
        self.pack_revisions(format!("{head}\n")).await
    }

    async fn pack_revisions(&self, revisions: String) -> Result<Vec<u8>, RunError> {
        let argv = [
            "git",
            "pack-objects",
            "--revs",
            "--thin",
            "--stdout",
            "--quiet",
        ];
        let exec = Exec::argv(argv, TIMEOUT).with_stdin(revisions);
        self.exec_checked("pack-objects", exec).await
    }
}

/// Returns a command that reads every object after `base` up to `head` and compares it with its id.
fn verify_objects_command(mut git: Command, base: &CommitId, head: &CommitId) -> Command {
    let range = format!("{base}..{head}");
    git.args(["rev-list", "--verify-objects", "--quiet", &range]);
    git
}

/// Returns whether git found every object. Git reports an empty one on standard error, not in its
/// exit code.
async fn has_all_objects(command: &mut Command) -> Result<bool, GitError> {
    let output = bounded::output(command, "rev-list", b"").await?;
    if output.status.code().is_none() {
        return Err(GitError::Failed {
            command: "rev-list".into(),
            message: format!("it was killed: {}", output.status),
        });
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Ok(output.status.success() && !stderr.lines().any(|line| line.starts_with("error:")))
}
