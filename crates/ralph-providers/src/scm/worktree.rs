//! Finds the worktree in which a branch is checked out.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use ralph_core::ports::ScmError;
use tokio::process::Command;

/// Time limit for git.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Maximum length of git's error output in an error.
const MAX_STDERR_CHARS: usize = 2_000;

/// The git program and its entire environment.
#[derive(Debug, Clone)]
pub struct GitProgram {
    pub program: PathBuf,
    /// The value of `PATH`, for programs started by git.
    pub path: OsString,
    /// A git configuration file named `.gitconfig`: git before 2.32 finds it through `HOME`.
    pub config: PathBuf,
}

impl GitProgram {
    /// Returns the worktree that has a branch checked out, if there is one.
    pub(super) async fn worktree_with_branch(
        &self,
        repo: &Path,
        branch: &str,
    ) -> Result<Option<String>, ScmError> {
        let listing = self
            .list_worktrees(repo)
            .await
            .map_err(|source| ScmError::Io {
                doing: format!("list the worktrees of `{}`", repo.display()),
                source,
            })?;
        Ok(find_worktree(&listing, branch))
    }

    async fn list_worktrees(&self, repo: &Path) -> io::Result<Vec<u8>> {
        let mut command = Command::new(&self.program);
        command
            .arg("-C")
            .arg(repo)
            .args(["worktree", "list", "--porcelain"])
            .env_clear()
            .env("PATH", &self.path)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", &self.config)
            .env("GIT_TERMINAL_PROMPT", "0")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        if let Some(home) = self.config.parent() {
            command.env("HOME", home);
        }
        if let Some(parent) = repo.parent() {
            // A directory inside a repository is not a repository itself: nothing can be pushed
            // there.
            command.env("GIT_CEILING_DIRECTORIES", parent);
        }
        let output = tokio::time::timeout(TIMEOUT, command.output())
            .await
            .map_err(|_| {
                let message = format!("git did not finish within {} seconds", TIMEOUT.as_secs());
                io::Error::new(io::ErrorKind::TimedOut, message)
            })??;
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(git_error(&output))
        }
    }
}

fn git_error(output: &Output) -> io::Error {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let stderr: String = stderr.trim().chars().take(MAX_STDERR_CHARS).collect();
    io::Error::other(format!("git ended with {}: {stderr}", output.status))
}

/// Finds a branch in the output of `git worktree list --porcelain`. Git before 2.36 cannot separate
/// the lines by NUL, so a path with a line break is truncated; it is only used in a message.
fn find_worktree(listing: &[u8], branch: &str) -> Option<String> {
    let wanted = format!("branch refs/heads/{branch}");
    let mut worktree = String::new();
    for attribute in listing.split(|byte| *byte == b'\n') {
        if let Some(path) = attribute.strip_prefix(b"worktree ") {
            worktree = String::from_utf8_lossy(path).into_owned();
        } else if attribute == wanted.as_bytes() {
            return Some(worktree);
        }
    }
    None
}
