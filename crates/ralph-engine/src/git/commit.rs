//! Commits in the sandbox with plumbing commands: no hooks run, and files that are not part of the
//! commit are not read.

use ralph_core::id::CommitId;
use ralph_core::path::WorkspacePath;
use ralph_core::ports::{Exec, WriteMode};

use super::sandbox::{STATUS_TIMEOUT, SandboxGit, TIMEOUT, failure_reason, scratch_path};
use super::survey::{Survey, exclude_pathspecs};
use super::{GitError, MAX_COMMIT_BYTES};
use crate::error::RunError;

/// The most files in one commit.
const MAX_COMMIT_FILES: usize = 500;

/// The outcome of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitOutcome {
    /// There is a new commit.
    Created(CommitId, CommitExclusions),
    /// There was nothing to commit, apart from these files, which are too large.
    Nothing(Vec<String>),
    /// The commit was refused; the reason is for the model.
    Rejected(String),
}

/// Entries that are excluded from a commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitExclusions {
    pub large: Vec<String>,
    /// Repositories inside the work tree: the commit contains their ids and none of their files.
    pub nested: Vec<String>,
}

/// Whether the run's own files, `.ralph/` and `ralph_task.md`, are part of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnFiles {
    /// Commits leave them out.
    Excluded,
    /// Commits contain them.
    Committed,
}

impl SandboxGit<'_> {
    /// Commits the given paths, or all changes.
    pub async fn commit(
        &self,
        message: &str,
        paths: &[WorkspacePath],
        own: OwnFiles,
    ) -> Result<CommitOutcome, RunError> {
        let Survey { large, .. } = self.survey().await?;
        if let Err(why) = self.stage(paths, &large).await? {
            // A damaged repository also fails here, and then the damage is reported.
            self.status().await?;
            return Ok(CommitOutcome::Rejected(why));
        }
        if own == OwnFiles::Committed {
            self.git(&["add", "--force", "--", ".ralph", "ralph_task.md"])
                .await?;
        }
        let staged = self
            .git(&[
                "diff-index",
                "--cached",
                "--raw",
                "-z",
                "--no-renames",
                "HEAD",
            ])
            .await?;
        let blobs = staged_blobs(&String::from_utf8_lossy(&staged));
        if blobs.is_empty() {
            return Ok(CommitOutcome::Nothing(large));
        }
        if let Some(why) = self.refuse_oversized(&blobs).await? {
            self.git(&["read-tree", "HEAD"]).await?;
            self.hide_own_files(own).await?;
            return Ok(CommitOutcome::Rejected(why));
        }
        let commit = self.commit_staged(message).await?;
        let nested = blobs.into_iter().filter(|blob| blob.is_repository);
        let nested = nested.map(|blob| blob.path).collect();
        Ok(CommitOutcome::Created(
            commit,
            CommitExclusions { large, nested },
        ))
    }

    /// Commits the staged changes and moves the branch to the new commit. Unlike `git commit`, this
    /// reads no file of the work tree, however many there are.
    async fn commit_staged(&self, message: &str) -> Result<CommitId, RunError> {
        self.write_scratch_file("message", message).await?;
        let tree = parse_object_id("write-tree", &self.git(&["write-tree"]).await?)?;
        let file = "../scratch/message";
        let args = ["commit-tree", tree.as_str(), "-p", "HEAD", "-F", file];
        let commit = parse_object_id("commit-tree", &self.git(&args).await?)?;
        self.git(&["update-ref", "-m", "ralph", "HEAD", commit.as_str()])
            .await?;
        Ok(commit)
    }

    /// Writes input for git into a file beside the repository. On standard input, a crash could
    /// truncate it, and git would use a partial message, or all paths for an empty list.
    async fn write_scratch_file(&self, name: &str, text: &str) -> Result<(), RunError> {
        let file = scratch_path(name)?;
        let written = self
            .sandbox
            .write(&file, text.as_bytes(), WriteMode::Replace);
        Ok(written.await?)
    }

    async fn stage(
        &self,
        paths: &[WorkspacePath],
        large: &[String],
    ) -> Result<Result<(), String>, RunError> {
        let named = paths.iter().map(WorkspacePath::as_str);
        if let Some(path) = named.clone().find(|path| large.iter().any(|l| l == path)) {
            return Ok(Err(format!(
                "`{path}` is larger than {} MiB, the limit of a commit; ignore or delete it",
                MAX_COMMIT_BYTES >> 20
            )));
        }
        let mut exec = Exec::argv(["git", "add", "--all"], STATUS_TIMEOUT);
        if !paths.is_empty() || !large.is_empty() {
            let mut list: Vec<String> = named.map(|path| format!(":(literal){path}")).collect();
            if paths.is_empty() {
                list.push(".".into());
            }
            list.extend(exclude_pathspecs(large));
            self.write_scratch_file("paths", &list.join("\0")).await?;
            let args = [
                "git",
                "add",
                "--all",
                "--pathspec-from-file=../scratch/paths",
                "--pathspec-file-nul",
            ];
            exec = Exec::argv(args, STATUS_TIMEOUT);
        }
        let output = self.exec(exec).await?;
        Ok(if output.ended.is_success() {
            Ok(())
        } else {
            let why = failure_reason(&output.stderr, output.ended);
            Err(why.replace(":(literal)", ""))
        })
    }

    async fn refuse_oversized(&self, blobs: &[StagedBlob]) -> Result<Option<String>, RunError> {
        if blobs.len() > MAX_COMMIT_FILES {
            let dirs = top_directories(blobs);
            return Ok(Some(format!(
                "the commit has {} files, at most {MAX_COMMIT_FILES} are allowed; most are in {dirs}; ignore generated files",
                blobs.len()
            )));
        }
        let ids: Vec<&str> = blobs.iter().map(|blob| blob.id.as_str()).collect();
        let exec = Exec::argv(["git", "cat-file", "--batch-check=%(objectsize)"], TIMEOUT)
            .with_stdin(ids.join("\n") + "\n");
        let sizes = self.exec_checked("cat-file", exec).await?;
        let total: u64 = String::from_utf8_lossy(&sizes)
            .lines()
            .flat_map(str::parse::<u64>)
            .sum();
        Ok((total > MAX_COMMIT_BYTES).then(|| {
            format!(
                "the commit adds {} MiB, at most {} are allowed",
                total >> 20,
                MAX_COMMIT_BYTES >> 20
            )
        }))
    }
}

struct StagedBlob {
    id: String,
    path: String,
    /// Whether the entry is the commit of another repository.
    is_repository: bool,
}

/// Reads `:mode mode old new letter NUL path NUL` records.
fn staged_blobs(raw: &str) -> Vec<StagedBlob> {
    let mut parts = raw.split('\0');
    let mut blobs = Vec::new();
    while let (Some(head), Some(path)) = (parts.next(), parts.next()) {
        let fields: Vec<&str> = head.split(' ').collect();
        if let [_, mode, _, id, ..] = fields.as_slice() {
            blobs.push(StagedBlob {
                id: (*id).to_owned(),
                path: path.to_owned(),
                is_repository: *mode == "160000",
            });
        }
    }
    blobs
}

fn top_directories(blobs: &[StagedBlob]) -> String {
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    for blob in blobs {
        *counts
            .entry(blob.path.split('/').next().unwrap_or_default())
            .or_default() += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
        .iter()
        .take(3)
        .map(|(dir, count)| format!("`{dir}` ({count})"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Parses the object id in the output of a command.
fn parse_object_id(command: &str, output: &[u8]) -> Result<CommitId, RunError> {
    let output = String::from_utf8_lossy(output).trim().to_owned();
    CommitId::parse(&output).ok_or_else(|| {
        GitError::Unexpected {
            command: command.to_owned(),
            output,
        }
        .into()
    })
}
