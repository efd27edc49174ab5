//! The state of a sandbox's repository: refs, written files, and a snapshot that can be restored.

use std::collections::BTreeSet;

use ralph_core::id::{CommitId, Digest};
use ralph_core::path::SandboxPath;
use ralph_core::ports::{Exec, SandboxError, WriteMode};

use super::GitError;
use super::sandbox::{STATUS_TIMEOUT, SandboxGit, TIMEOUT, scratch_path};
use super::survey::{exclude_pathspecs, literal_pathspec};
use super::work_tree::is_own_file;
use crate::error::RunError;
use crate::transfer;
use crate::workspace::repo_path;

/// The largest index that is stored, about 600,000 files.
const MAX_INDEX: u64 = 64 << 20;
/// A file in the scratch directory with the time of the checkout.
const STAMP: &str = "stamp";

/// The refs of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RepoRefs {
    pub(crate) commit: String,
    /// Empty for a detached HEAD.
    pub(crate) branch: String,
    /// Every ref with its object.
    pub(crate) all: Vec<String>,
}

impl RepoRefs {
    /// Returns the refs, other than the branch, that differ from an earlier state.
    pub(crate) fn others_changed_since(&self, before: &Self) -> Vec<String> {
        let is_new = |line: &&String| !before.all.contains(line);
        let name = |line: &String| line.split(' ').next().unwrap_or_default().to_owned();
        let names = self.all.iter().filter(is_new).map(name);
        names.filter(|name| *name != before.branch).collect()
    }
}

/// The state of a workspace before a check: files, index and HEAD.
#[derive(Debug, Clone)]
pub(crate) struct WorkSnapshot {
    refs: RepoRefs,
    index: Option<Vec<u8>>,
    index_tree: String,
    /// The tree of all files that git does not ignore.
    files: String,
}

impl SandboxGit<'_> {
    /// Returns the refs of the repository.
    pub(crate) async fn refs(&self) -> Result<RepoRefs, RunError> {
        let script = "git rev-parse --verify HEAD || exit; git symbolic-ref -q HEAD || echo; \
            git for-each-ref --format='%(refname) %(objectname)'";
        let text = self
            .exec_checked("rev-parse", Exec::shell(script, TIMEOUT))
            .await?;
        let text = String::from_utf8_lossy(&text);
        let mut lines = text.lines().map(str::to_owned);
        Ok(RepoRefs {
            commit: lines.next().unwrap_or_default(),
            branch: lines.next().unwrap_or_default(),
            all: lines.collect(),
        })
    }

    /// Checks out a commit in the workspace, with the branch at that commit.
    pub(crate) async fn check_out_commit(&self, commit: &CommitId) -> Result<(), RunError> {
        self.git(&["update-ref", "HEAD", commit.as_str()]).await?;
        self.check_out().await
    }

    /// Returns the untracked files, ignored ones included, without the run's own. A directory without
    /// committed files is one path.
    pub(crate) async fn untracked_paths(&self) -> Result<Vec<String>, RunError> {
        let listed = self
            .git(&["ls-files", "-z", "--others", "--directory"])
            .await?;
        let paths = String::from_utf8_lossy(&listed).into_owned();
        let paths = paths.split('\0').map(|path| path.trim_end_matches('/'));
        let paths = paths.filter(|path| !path.is_empty() && !is_own_file(path));
        Ok(paths.map(str::to_owned).collect())
    }

    /// Replaces files of the checkout by those of another commit, and removes others.
    pub(crate) async fn replace_files_from(
        &self,
        commit: &CommitId,
        restored: &[String],
        removed: &[String],
    ) -> Result<(), RunError> {
        self.git_on_paths(&["checkout", "--quiet", commit.as_str()], restored)
            .await?;
        self.git_on_paths(&["rm", "--quiet", "--force"], removed)
            .await
    }

    /// Sets HEAD and the index to a commit, with some files as in another commit and others removed.
    /// Files of the checkout stay as they are.
    pub(crate) async fn stage_commit(
        &self,
        commit: &CommitId,
        base: Option<&CommitId>,
        (restored, removed): (&[String], &[String]),
    ) -> Result<(), RunError> {
        self.git(&["update-ref", "HEAD", commit.as_str()]).await?;
        self.git(&["read-tree", commit.as_str()]).await?;
        let Some(base) = base else {
            return Ok(());
        };
        let unstage = ["rm", "--cached", "--quiet", "--force", "--ignore-unmatch"];
        self.git_on_paths(&["reset", "--quiet", base.as_str()], restored)
            .await?;
        self.git_on_paths(&unstage, removed).await
    }

    /// Removes the index, so that the next checkout writes every file.
    pub(crate) async fn remove_index(&self) -> Result<(), RunError> {
        Ok(self.sandbox.delete(&repo_path(".git/index")?).await?)
    }

    /// Returns a digest of the content of files, some of which may be missing.
    pub(crate) async fn digest_of_files(&self, paths: &[String]) -> Result<Digest, RunError> {
        let script = "for path; do if [ -f \"$path\" ]; then \
            git hash-object --no-filters -- \"$path\" || exit; else echo none; fi; done";
        let argv = ["sh", "-c", script, "sh"].into_iter();
        let argv = argv.chain(paths.iter().map(String::as_str));
        let exec = Exec::argv(argv, TIMEOUT);
        Ok(Digest::compute(
            &self.exec_checked("hash-object", exec).await?,
        ))
    }

    async fn git_on_paths(&self, command: &[&str], paths: &[String]) -> Result<(), RunError> {
        if paths.is_empty() {
            return Ok(());
        }
        let argv = std::iter::once("git").chain(command.iter().copied());
        let argv = argv.chain(["--pathspec-from-file=-", "--pathspec-file-nul"]);
        let selected: Vec<String> = paths.iter().map(|path| literal_pathspec(path)).collect();
        let exec = Exec::argv(argv, TIMEOUT).with_stdin(selected.join("\0"));
        self.exec_checked(command[0], exec).await.map(drop)
    }

    /// Creates the file that separates earlier from later writes by its time; returns that time.
    pub(crate) async fn create_stamp(&self) -> Result<jiff::Timestamp, RunError> {
        self.sandbox
            .write(&scratch_path(STAMP)?, b"", WriteMode::Replace)
            .await?;
        self.stamp_time().await
    }

    async fn stamp_time(&self) -> Result<jiff::Timestamp, RunError> {
        let entries = self.sandbox.list(&SandboxPath::scratch()).await?;
        let stamp = entries.into_iter().find(|entry| entry.name == STAMP);
        let missing = || SandboxError::NotFound(STAMP.to_owned());
        Ok(stamp.ok_or_else(missing)?.modified)
    }

    /// Returns the files of an index that were written after the stamp, even if their content is
    /// unchanged. Git's own comparison has a resolution of one second, so `find` compares the
    /// times.
    pub(crate) async fn written_since(
        &self,
        index: &[u8],
        stamped: jiff::Timestamp,
    ) -> Result<Vec<String>, RunError> {
        let file = scratch_path("before.index")?;
        transfer::write_all(self.sandbox, index, &file).await?;
        let listed = |more: &str| {
            Exec::shell(format!("git ls-files -z {more}"), TIMEOUT)
                .with_env("GIT_INDEX_FILE", format!("../{file}"))
        };
        let tracked = split_nul_paths(&self.exec_checked("ls-files", listed("")).await?);
        let mut written =
            split_nul_paths(&self.exec_checked("ls-files", listed("--deleted")).await?);
        if !matches!(self.stamp_time().await, Ok(time) if time == stamped) {
            written.push("(the times of the files cannot be compared)".to_owned());
        }
        let newer = "find . -path ./.git -prune -o \\( -type f -o -type l \\)";
        let stamp = format!("../{}", scratch_path(STAMP)?);
        // Not every `find` compares the time of the last change of an inode.
        let script = format!(
            "{newer} -cnewer {stamp} -print0 2>/dev/null || {newer} -newer {stamp} -print0"
        );
        let found = split_nul_paths(
            &self
                .exec_checked("find", Exec::shell(script, TIMEOUT))
                .await?,
        );
        let tracked: BTreeSet<&str> = tracked.iter().map(String::as_str).collect();
        let found = found.iter().map(|path| path.trim_start_matches("./"));
        let found: BTreeSet<&str> = found.filter(|path| tracked.contains(path)).collect();
        written.extend(found.into_iter().map(str::to_owned));
        Ok(written)
    }

    /// Records files, index and HEAD of the workspace; none if the repository cannot be read.
    pub(crate) async fn snapshot(&self) -> Result<Option<WorkSnapshot>, RunError> {
        let snapshot = async {
            Ok(WorkSnapshot {
                refs: self.refs().await?,
                index: self.index().await?,
                index_tree: self.index_tree().await?,
                files: self.work_tree_id().await?,
            })
        };
        match snapshot.await {
            Ok(snapshot) => Ok(Some(snapshot)),
            // A damaged repository is repaired when the iteration is settled.
            Err(RunError::Git(GitError::InSandbox { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Restores the workspace to a snapshot and returns the changed paths. Ignored files stay.
    pub(crate) async fn restore(&self, before: &WorkSnapshot) -> Result<Vec<String>, RunError> {
        let mut changed = Vec::new();
        let refs = match self.refs().await {
            Ok(refs) => Some(refs),
            // HEAD is invalid; it is set below.
            Err(RunError::Git(GitError::InSandbox { .. })) => None,
            Err(error) => return Err(error),
        };
        if refs
            .as_ref()
            .is_none_or(|refs| refs.branch != before.refs.branch)
        {
            if before.refs.branch.is_empty() {
                let detached = ["update-ref", "--no-deref", "HEAD", &before.refs.commit];
                self.git(&detached).await?;
            } else {
                self.git(&["symbolic-ref", "HEAD", &before.refs.branch])
                    .await?;
            }
            changed.push("HEAD".to_owned());
        }
        if refs.is_none_or(|refs| refs.commit != before.refs.commit) {
            self.git(&["update-ref", "HEAD", &before.refs.commit])
                .await?;
            changed.push("HEAD".to_owned());
        }
        changed.dedup();
        let files = self.work_tree_id().await?;
        if files != before.files {
            changed.extend(self.restore_files(&files, &before.files).await?);
        }
        if changed.is_empty() && self.index_tree().await? == before.index_tree {
            return Ok(changed);
        }
        if let Some(index) = &before.index {
            transfer::write_all(self.sandbox, index, &index_path()?).await?;
        }
        Ok(changed)
    }

    /// Replaces the files of one tree by those of another and returns the paths that differ.
    async fn restore_files(&self, from: &str, to: &str) -> Result<Vec<String>, RunError> {
        let differing = [
            "diff-tree",
            "-r",
            "--no-renames",
            "--name-only",
            "-z",
            to,
            from,
        ];
        let text = self.git(&differing).await?;
        let script = "set -e; export GIT_INDEX_FILE=\"$PWD/.git/ralph.index\"; \
            git read-tree --reset -u \"$TREE\"; rm -f \"$GIT_INDEX_FILE\"";
        let exec = Exec::shell(script, TIMEOUT).with_env("TREE", to);
        self.exec_checked("read-tree", exec).await?;
        Ok(split_nul_paths(&text))
    }

    /// Returns the index; none if it does not exist or is too large to store.
    pub(crate) async fn index(&self) -> Result<Option<Vec<u8>>, RunError> {
        match self.sandbox.read(&index_path()?, MAX_INDEX).await {
            Ok(index) => Ok(Some(index)),
            Err(SandboxError::NotFound(_) | SandboxError::TooLarge { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the tree of the index; empty in the middle of a merge.
    async fn index_tree(&self) -> Result<String, RunError> {
        match self.git(&["write-tree"]).await {
            Ok(text) => Ok(String::from_utf8_lossy(&text).trim().to_owned()),
            Err(RunError::Git(GitError::InSandbox { .. })) => Ok(String::new()),
            Err(error) => Err(error),
        }
    }

    /// Returns the tree of all files that git does not ignore, through a copy of the index. Files
    /// that are too large for git are left out.
    async fn work_tree_id(&self) -> Result<String, RunError> {
        let large = self.survey().await?.large;
        let script = "set -e; export GIT_INDEX_FILE=\"$PWD/.git/ralph.index\"; \
            rm -f \"$GIT_INDEX_FILE\"; \
            if [ -e .git/index ]; then cp .git/index \"$GIT_INDEX_FILE\"; fi; \
            git add --all --ignore-errors -- . \"$@\" >&2 || true; git write-tree";
        let argv = ["sh", "-c", script, "sh"].map(String::from);
        let exec = Exec::argv(
            argv.into_iter().chain(exclude_pathspecs(&large)),
            STATUS_TIMEOUT,
        );
        let text = self.exec_checked("write-tree", exec).await?;
        Ok(String::from_utf8_lossy(&text).trim().to_owned())
    }
}

/// Splits a list of paths that end with NUL.
fn split_nul_paths(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let paths = text.split('\0').filter(|path| !path.is_empty());
    paths.map(str::to_owned).collect()
}

fn index_path() -> Result<SandboxPath, RunError> {
    repo_path(".git/index")
}
