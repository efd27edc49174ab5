//! Git inside the sandbox, over `Sandbox::exec`. It may lie, so the host believes only what it has
//! fetched and checked itself.

use std::path::Path;
use std::time::Duration;

use ralph_core::id::CommitId;
use ralph_core::path::{SandboxPath, WorkspacePath};
use ralph_core::ports::{Ended, Exec, OutputSink, Sandbox, SandboxError, Stream};

use super::GitError;
use super::commit::OwnFiles;
use super::telling::telling_line;
use super::work_tree::WorkTree;
use crate::error::RunError;
use crate::transfer;

pub(super) const TIMEOUT: Duration = Duration::from_mins(10);
const ANSWER_LIMIT: usize = 64 << 20;
/// The paths of a diff: everything but the run's own files.
const WITHOUT_OWN_FILES: [&str; 4] = ["--", ".", ":(exclude).ralph", ":(exclude)ralph_task.md"];

/// Runs git in a sandbox.
pub struct SandboxGit<'a> {
    pub(super) sandbox: &'a dyn Sandbox,
}

/// What a fresh workspace is made from.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// A bundle on the host.
    pub bundle: &'a Path,
    /// The branch in it.
    pub branch: &'a str,
}

pub(super) struct Answer {
    pub(super) ended: Ended,
    stdout: Vec<u8>,
    pub(super) stderr: String,
}

impl Answer {
    /// Returns what the command printed, or that it failed.
    fn checked(self, command: &str) -> Result<Vec<u8>, GitError> {
        if self.ended.is_success() {
            return Ok(self.stdout);
        }
        Err(GitError::InSandbox {
            command: command.to_owned(),
            message: complaint(&self.stderr, self.ended),
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
    pub(super) async fn exec(&self, exec: Exec) -> Result<Answer, SandboxError> {
        let exec = exec
            .with_env("GIT_DIR", ".git")
            .with_env("GIT_WORK_TREE", ".");
        self.exec_anywhere(exec).await
    }

    async fn exec_anywhere(&self, exec: Exec) -> Result<Answer, SandboxError> {
        let exec = exec
            .with_env("GIT_CONFIG_GLOBAL", "/dev/null")
            .with_env("GIT_CONFIG_NOSYSTEM", "1")
            .with_env("GIT_CONFIG_COUNT", "2")
            .with_env("GIT_CONFIG_KEY_0", "core.hooksPath")
            .with_env("GIT_CONFIG_VALUE_0", "/dev/null")
            .with_env("GIT_CONFIG_KEY_1", "core.fsmonitor")
            .with_env("GIT_CONFIG_VALUE_1", "false")
            // Replaced objects and grafts would show another history than the one that is pushed.
            .with_env("GIT_NO_REPLACE_OBJECTS", "1")
            .with_env("GIT_GRAFT_FILE", "/dev/null/none")
            .with_env("LC_ALL", "C.UTF-8");
        let mut collect = Collect::default();
        let outcome = self.sandbox.exec(exec, &mut collect).await?;
        Ok(Answer {
            ended: outcome.ended,
            stdout: collect.stdout,
            stderr: String::from_utf8_lossy(&collect.stderr).into_owned(),
        })
    }

    pub(super) async fn git(&self, args: &[&str]) -> Result<Vec<u8>, RunError> {
        let exec = Exec::argv(std::iter::once("git").chain(args.iter().copied()), TIMEOUT);
        self.checked(args[0], exec).await
    }

    pub(super) async fn checked(&self, command: &str, exec: Exec) -> Result<Vec<u8>, RunError> {
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

    /// Removes the locks of git processes that were killed. Nothing may be running in the sandbox.
    pub async fn remove_locks(&self) -> Result<(), RunError> {
        let script = "find .git -name '*.lock' ! -type d -exec rm -f {} +";
        // Where there is no repository there are no locks either.
        self.exec(Exec::shell(script, TIMEOUT)).await?;
        Ok(())
    }

    /// Makes the files what the commit says, in a fresh workspace.
    pub async fn check_out(&self) -> Result<(), RunError> {
        self.git(&["reset", "--quiet", "--hard"]).await.map(drop)
    }

    /// Hides the run's own files from git where the repository tracks them, unless they are committed.
    pub async fn hide_own_files(&self, own: OwnFiles) -> Result<(), RunError> {
        if own == OwnFiles::Committed {
            return Ok(());
        }
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

    /// Returns the full diff of the workspace against a commit, new files included, own files not.
    pub async fn diff(&self, from: &CommitId, tree: &WorkTree) -> Result<Vec<u8>, RunError> {
        let mut args = vec![
            "diff",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            from.as_str(),
        ];
        if tree.entries.is_empty() {
            let Some(head) = tree.head.as_ref().filter(|head| *head != from) else {
                return Ok(Vec::new());
            };
            args.push(head.as_str());
        }
        args.extend(WITHOUT_OWN_FILES);
        self.with_untracked(tree, &args).await
    }

    /// Returns a summary of what is not committed, new files included, own files not.
    pub async fn diff_stat(&self, tree: &WorkTree) -> Result<String, RunError> {
        if tree.entries.is_empty() {
            return Ok(String::new());
        }
        let mut args = vec!["diff", "--stat=100", "--no-color", "--no-ext-diff", "HEAD"];
        args.extend(WITHOUT_OWN_FILES);
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
            git add --intent-to-add --all --ignore-errors || true; git \"$@\"; rm -f \"$GIT_INDEX_FILE\"";
        let command = [&["sh", "-c", script, "sh"], args].concat();
        self.checked(args[0], Exec::argv(command, TIMEOUT)).await
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

    /// Returns the branch's commits after `known` as a bundle.
    pub async fn bundle(&self, branch: &str, known: &CommitId) -> Result<Vec<u8>, RunError> {
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
        if bytes.len() >= ANSWER_LIMIT {
            let message = format!("the new commits have more than {} MiB", ANSWER_LIMIT >> 20);
            return Err(GitError::InSandbox {
                command: "bundle".into(),
                message,
            }
            .into());
        }
        Ok(bytes)
    }
}

/// Returns why a command failed, in a line.
pub(super) fn complaint(stderr: &str, ended: Ended) -> String {
    telling_line(stderr).map_or_else(|| ended.to_string(), str::to_owned)
}

pub(super) fn scratch(name: &str) -> Result<SandboxPath, RunError> {
    let path =
        WorkspacePath::parse(name).map_err(|error| SandboxError::Escapes(error.to_string()))?;
    Ok(SandboxPath::in_scratch(&path))
}
