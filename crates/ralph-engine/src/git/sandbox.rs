//! Git inside the sandbox, over `Sandbox::exec`. It may lie, so the host believes only what it has
//! fetched and checked itself.

use std::path::Path;
use std::time::Duration;

use ralph_core::id::CommitId;
use ralph_core::path::{SandboxPath, WorkspacePath};
use ralph_core::ports::{Ended, Exec, OutputSink, Sandbox, SandboxError, Stream};

use super::GitError;
use super::work_tree::WorkTree;
use crate::durable::StoreError;
use crate::error::RunError;
use crate::transfer;

const TIMEOUT: Duration = Duration::from_mins(10);
const ANSWER_LIMIT: usize = 64 << 20;
/// The most files one commit may touch.
pub(super) const MAX_COMMIT_FILES: usize = 500;
/// The most bytes one commit may add.
pub(super) const MAX_COMMIT_BYTES: u64 = 20 << 20;

/// Runs git in a sandbox.
pub struct SandboxGit<'a> {
    sandbox: &'a dyn Sandbox,
}

/// What a fresh workspace is made from.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// A bundle on the host.
    pub bundle: &'a Path,
    /// The branch in it.
    pub branch: &'a str,
}

/// How a commit went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitOutcome {
    /// There is a new commit.
    Made(CommitId),
    /// There was nothing to commit.
    Nothing,
    /// It was not made; the reason is for the model.
    Rejected(String),
}

struct Answer {
    ended: Ended,
    stdout: Vec<u8>,
    stderr: String,
}

impl Answer {
    /// Returns what the command printed, or that it failed.
    fn checked(self, command: &str) -> Result<Vec<u8>, GitError> {
        if self.ended.is_success() {
            return Ok(self.stdout);
        }
        Err(GitError::InSandbox {
            command: command.to_owned(),
            message: last_line(&self.stderr, self.ended),
        })
    }
}

#[derive(Default)]
struct Collect {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl OutputSink for Collect {
    fn chunk(&mut self, stream: Stream, bytes: &[u8]) {
        let (kept, limit) = match stream {
            Stream::Stdout => (&mut self.stdout, ANSWER_LIMIT),
            Stream::Stderr => (&mut self.stderr, 64 << 10),
        };
        let room = limit.saturating_sub(kept.len()).min(bytes.len());
        kept.extend_from_slice(&bytes[..room]);
    }
}

impl<'a> SandboxGit<'a> {
    /// Uses the git of a sandbox.
    pub fn new(sandbox: &'a dyn Sandbox) -> Self {
        Self { sandbox }
    }

    /// Runs git in the workspace, and never in a repository around it when its own is gone.
    async fn exec(&self, exec: Exec) -> Result<Answer, SandboxError> {
        let exec = exec
            .with_env("GIT_DIR", ".git")
            .with_env("GIT_WORK_TREE", ".");
        self.exec_anywhere(exec).await
    }

    async fn exec_anywhere(&self, exec: Exec) -> Result<Answer, SandboxError> {
        let exec = exec
            .with_env("GIT_CONFIG_GLOBAL", "/dev/null")
            .with_env("GIT_CONFIG_NOSYSTEM", "1")
            .with_env("GIT_LITERAL_PATHSPECS", "1")
            .with_env("GIT_CONFIG_COUNT", "2")
            .with_env("GIT_CONFIG_KEY_0", "core.hooksPath")
            .with_env("GIT_CONFIG_VALUE_0", "/dev/null")
            .with_env("GIT_CONFIG_KEY_1", "core.fsmonitor")
            .with_env("GIT_CONFIG_VALUE_1", "false")
            .with_env("LC_ALL", "C.UTF-8");
        let mut collect = Collect::default();
        let outcome = self.sandbox.exec(exec, &mut collect).await?;
        Ok(Answer {
            ended: outcome.ended,
            stdout: collect.stdout,
            stderr: String::from_utf8_lossy(&collect.stderr).into_owned(),
        })
    }

    async fn git(&self, args: &[&str]) -> Result<Vec<u8>, RunError> {
        let exec = Exec::argv(std::iter::once("git").chain(args.iter().copied()), TIMEOUT);
        self.checked(args[0], exec).await
    }

    async fn checked(&self, command: &str, exec: Exec) -> Result<Vec<u8>, RunError> {
        Ok(self.exec(exec).await?.checked(command)?)
    }

    /// Puts a repository with one branch into the workspace, replacing its `.git`. Files stay as they are.
    pub async fn install(&self, origin: Origin<'_>) -> Result<(), RunError> {
        // Whatever became of the directory, nothing in it is needed.
        self.sandbox.delete(&SandboxPath::scratch()).await?;
        transfer::upload(self.sandbox, origin.bundle, &scratch("in.bundle")?).await?;
        let script = "set -e; rm -rf clone; \
            git clone --quiet --no-checkout --template= --branch \"$BRANCH\" in.bundle clone; \
            cd clone; git remote remove origin; \
            git config user.name ralph; git config user.email ralph@localhost; git config gc.auto 0; \
            mkdir -p .git/info; printf '/.ralph\\n/ralph_task.md\\n' > .git/info/exclude; \
            cd ..; rm -rf ../repo/.git; mv clone/.git ../repo/.git; rm -rf clone in.bundle";
        let exec = Exec::shell(script, TIMEOUT)
            .in_dir(SandboxPath::scratch())
            .with_env("BRANCH", origin.branch);
        self.exec_anywhere(exec).await?.checked("clone")?;
        Ok(())
    }

    /// Makes the files what the commit says, in a fresh workspace.
    pub async fn check_out(&self) -> Result<(), RunError> {
        self.git(&["reset", "--quiet", "--hard"]).await.map(drop)
    }

    /// Hides the run's own files from git where the repository tracks them.
    pub async fn hide_own_files(&self) -> Result<(), RunError> {
        let tracked = self
            .git(&["ls-files", "-z", "--", "ralph_task.md", ".ralph"])
            .await?;
        if tracked.is_empty() {
            return Ok(());
        }
        let exec = Exec::argv(
            ["git", "update-index", "--skip-worktree", "-z", "--stdin"],
            TIMEOUT,
        )
        .with_stdin(tracked);
        self.checked("update-index", exec).await.map(drop)
    }

    /// Looks at the workspace. The run's own files are left out.
    pub async fn status(&self) -> Result<WorkTree, RunError> {
        let text = self
            .git(&["status", "--porcelain=v2", "--branch", "-z"])
            .await?;
        Ok(WorkTree::parse(&String::from_utf8_lossy(&text)))
    }

    /// Returns the full diff of the workspace against a commit, new files included.
    pub async fn diff(&self, from: &CommitId, tree: &WorkTree) -> Result<Vec<u8>, RunError> {
        let plain = ["diff", "--no-color", "--no-ext-diff", "--no-textconv"];
        if tree.entries.is_empty() {
            let Some(head) = tree.head.as_ref().filter(|head| *head != from) else {
                return Ok(Vec::new());
            };
            return self
                .git(&[&plain[..], &[from.as_str(), head.as_str()]].concat())
                .await;
        }
        self.with_untracked(tree, &[&plain[..], &[from.as_str()]].concat())
            .await
    }

    /// Returns a summary of what is not committed, new files included.
    pub async fn diff_stat(&self, tree: &WorkTree) -> Result<String, RunError> {
        if tree.entries.is_empty() {
            return Ok(String::new());
        }
        let args = ["diff", "--stat=100", "--no-color", "--no-ext-diff", "HEAD"];
        let text = self.with_untracked(tree, &args).await?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Runs a diff that shows files git does not know, too: they are announced in a copy of the index,
    /// so that looking changes nothing.
    async fn with_untracked(&self, tree: &WorkTree, args: &[&str]) -> Result<Vec<u8>, RunError> {
        if !tree.has_untracked() {
            return self.git(args).await;
        }
        let script = "set -e; export GIT_INDEX_FILE=\"$PWD/.git/ralph.index\"; \
            if [ -e .git/index ]; then cp .git/index \"$GIT_INDEX_FILE\"; fi; \
            git add --intent-to-add --all; git \"$@\"; rm -f \"$GIT_INDEX_FILE\"";
        let whole = [&["sh", "-c", script, "sh"], args].concat();
        self.checked(args[0], Exec::argv(whole, TIMEOUT)).await
    }

    /// Commits the given paths, or everything but the run's own files.
    pub async fn commit(
        &self,
        message: &str,
        paths: &[WorkspacePath],
    ) -> Result<CommitOutcome, RunError> {
        if let Err(why) = self.stage(paths).await? {
            return Ok(CommitOutcome::Rejected(why));
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
            return Ok(CommitOutcome::Nothing);
        }
        if let Some(why) = self.too_much(&blobs).await? {
            self.git(&["reset", "--quiet"]).await?;
            return Ok(CommitOutcome::Rejected(why));
        }
        let script = "set -e; tree=$(git write-tree); commit=$(git commit-tree \"$tree\" -p HEAD -F -); \
            git update-ref -m ralph HEAD \"$commit\"; echo \"$commit\"";
        let exec = Exec::shell(script, TIMEOUT).with_stdin(message);
        let answer = String::from_utf8_lossy(&self.checked("commit", exec).await?)
            .trim()
            .to_owned();
        CommitId::parse(&answer)
            .map(CommitOutcome::Made)
            .ok_or_else(|| {
                GitError::Unexpected {
                    command: "commit".into(),
                    answer,
                }
                .into()
            })
    }

    async fn stage(&self, paths: &[WorkspacePath]) -> Result<Result<(), String>, RunError> {
        let mut exec = Exec::argv(["git", "add", "--all"], TIMEOUT);
        if !paths.is_empty() {
            let list: Vec<&str> = paths.iter().map(WorkspacePath::as_str).collect();
            let args = [
                "git",
                "add",
                "--all",
                "--pathspec-from-file=-",
                "--pathspec-file-nul",
            ];
            exec = Exec::argv(args, TIMEOUT).with_stdin(list.join("\0"));
        }
        let answer = self.exec(exec).await?;
        Ok(if answer.ended.is_success() {
            Ok(())
        } else {
            Err(last_line(&answer.stderr, answer.ended))
        })
    }

    async fn too_much(&self, blobs: &[StagedBlob]) -> Result<Option<String>, RunError> {
        if blobs.len() > MAX_COMMIT_FILES {
            let dirs = top_directories(blobs);
            return Ok(Some(format!(
                "the commit has {} files, at most {MAX_COMMIT_FILES} are allowed; most are in {dirs}; ignore what is generated",
                blobs.len()
            )));
        }
        let ids: Vec<&str> = blobs.iter().map(|blob| blob.id.as_str()).collect();
        let exec = Exec::argv(["git", "cat-file", "--batch-check=%(objectsize)"], TIMEOUT)
            .with_stdin(ids.join("\n") + "\n");
        let sizes = self.checked("cat-file", exec).await?;
        let total: u64 = String::from_utf8_lossy(&sizes)
            .lines()
            .filter_map(|line| line.parse::<u64>().ok())
            .sum();
        Ok((total > MAX_COMMIT_BYTES).then(|| {
            format!(
                "the commit adds {} MiB, at most {} are allowed",
                total >> 20,
                MAX_COMMIT_BYTES >> 20
            )
        }))
    }

    /// Tells whether the checked-out commit carries a trailer.
    pub async fn head_has(&self, trailer: &str) -> Result<Option<CommitId>, RunError> {
        let text = self.git(&["log", "-1", "--format=%H%n%B"]).await?;
        let text = String::from_utf8_lossy(&text);
        let found = text.lines().skip(1).any(|line| line.trim() == trailer);
        Ok(text
            .lines()
            .next()
            .filter(|_| found)
            .and_then(CommitId::parse))
    }

    /// Puts the workspace back on its branch at a commit, keeping the files.
    pub async fn put_back(&self, branch: &str, commit: &CommitId) -> Result<(), RunError> {
        self.git(&["symbolic-ref", "HEAD", &format!("refs/heads/{branch}")])
            .await?;
        self.git(&["reset", "--quiet", "--mixed", commit.as_str()])
            .await
            .map(drop)
    }

    /// Tells whether a revision continues a commit.
    pub async fn follows(&self, revision: &str, commit: &CommitId) -> Result<bool, RunError> {
        let exec = Exec::argv(
            [
                "git",
                "merge-base",
                "--is-ancestor",
                commit.as_str(),
                revision,
            ],
            TIMEOUT,
        );
        Ok(self.exec(exec).await?.ended.is_success())
    }

    /// Writes the branch's commits after `known` to a bundle on the host.
    pub async fn bundle(
        &self,
        branch: &str,
        known: &CommitId,
        file: &Path,
    ) -> Result<(), RunError> {
        let branch = format!("refs/heads/{branch}");
        let bytes = self
            .git(&[
                "bundle",
                "create",
                "--quiet",
                "-",
                &format!("^{known}"),
                &branch,
            ])
            .await?;
        std::fs::write(file, bytes).map_err(StoreError::when("write", file))?;
        Ok(())
    }
}

struct StagedBlob {
    id: String,
    path: String,
}

/// Reads `:mode mode old new letter NUL path NUL` records.
fn staged_blobs(raw: &str) -> Vec<StagedBlob> {
    let mut parts = raw.split('\0');
    let mut blobs = Vec::new();
    while let (Some(head), Some(path)) = (parts.next(), parts.next()) {
        if let Some(id) = head.split(' ').nth(3) {
            blobs.push(StagedBlob {
                id: id.to_owned(),
                path: path.to_owned(),
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

fn last_line(stderr: &str, ended: Ended) -> String {
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
    last.map_or_else(|| ended.to_string(), |line| line.trim().to_owned())
}

fn scratch(name: &str) -> Result<SandboxPath, RunError> {
    let path =
        WorkspacePath::parse(name).map_err(|error| SandboxError::Escapes(error.to_string()))?;
    Ok(SandboxPath::in_scratch(&path))
}
