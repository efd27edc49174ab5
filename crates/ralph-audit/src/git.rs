//! Read-only git processes that are isolated from the user's environment.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The output format of `git log`: commit, run trailers, action trailers.
const FORMAT: &str = "--format=%H%x00\
    %(trailers:key=Ralph-Run,valueonly,unfold,separator=%x1f)%x00\
    %(trailers:key=Ralph-Action,valueonly,unfold,separator=%x1f)";

/// git does not pass `-c` settings of `ls-remote` on to `upload-pack`, so it is set here again.
const UPLOAD_PACK: &str = "--upload-pack=git -c 'safe.directory=*' upload-pack";

/// Runs git.
#[derive(Debug, Clone, Copy)]
pub(super) struct AuditGit<'a> {
    /// The `PATH` for finding git.
    pub(super) path_variable: &'a str,
}

/// The reason why a git command failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum AuditGitError {
    /// Git cannot be started.
    #[error("cannot run git: {0}")]
    Missing(io::Error),
    /// Git reported an error.
    #[error("git {command} failed: {message}")]
    Failed {
        command: &'static str,
        /// The error output of git.
        message: String,
    },
}

/// A commit with its trailers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AuditCommit {
    pub(super) id: String,
    pub(super) run_trailers: Vec<String>,
    pub(super) action_trailers: Vec<String>,
}

impl AuditGit<'_> {
    pub(super) fn run(&self, args: &[&OsStr]) -> Result<Output, AuditGitError> {
        Command::new("git")
            .args(["-c", "safe.directory=*"])
            .args(args)
            .current_dir("/")
            .env_clear()
            .env("PATH", self.path_variable)
            .env("LC_ALL", "C")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            // A replaced object would show another history than the pushed one.
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .stdin(Stdio::null())
            .output()
            .map_err(AuditGitError::Missing)
    }

    /// Returns the head of a branch in a bare repository, if the branch exists.
    pub(super) fn branch_head(
        &self,
        repo: &Path,
        branch: &str,
    ) -> Result<Option<String>, AuditGitError> {
        let reference = format!("refs/heads/{branch}");
        let args: [&OsStr; 6] = [
            "--git-dir".as_ref(),
            repo.as_ref(),
            "rev-parse".as_ref(),
            "--verify".as_ref(),
            "--quiet".as_ref(),
            reference.as_ref(),
        ];
        let output = self.run(&args)?;
        if output.status.code() == Some(1) {
            return Ok(None);
        }
        stdout_text("rev-parse", &output).map(|id| Some(id.trim().to_owned()))
    }

    /// Returns the commits of `tip` that are not in `base`, newest first.
    pub(super) fn commits_between(
        &self,
        repo: &Path,
        base: &str,
        tip: &str,
    ) -> Result<Vec<AuditCommit>, AuditGitError> {
        let range = format!("{base}..{tip}");
        let args: [&OsStr; 7] = [
            "--git-dir".as_ref(),
            repo.as_ref(),
            "log".as_ref(),
            "--no-show-signature".as_ref(),
            FORMAT.as_ref(),
            range.as_ref(),
            "--".as_ref(),
        ];
        let log = stdout_text("log", &self.run(&args)?)?;
        Ok(log.lines().map(parse_commit).collect())
    }

    /// Returns the head of a branch in a repository on this machine, as a client would see it.
    pub(super) fn remote_branch_head(
        &self,
        repo: &Path,
        branch: &str,
    ) -> Result<Option<String>, AuditGitError> {
        let reference = format!("refs/heads/{branch}");
        let args: [&OsStr; 5] = [
            "ls-remote".as_ref(),
            "--quiet".as_ref(),
            UPLOAD_PACK.as_ref(),
            repo.as_ref(),
            reference.as_ref(),
        ];
        let refs = stdout_text("ls-remote", &self.run(&args)?)?;
        let exact = |line: &str| {
            let (id, name) = line.split_once('\t')?;
            (name == reference).then(|| id.to_owned())
        };
        Ok(refs.lines().find_map(exact))
    }
}

fn stdout_text(command: &'static str, output: &Output) -> Result<String, AuditGitError> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
    Err(AuditGitError::Failed {
        command,
        message: last.unwrap_or("no message").trim().to_owned(),
    })
}

fn parse_commit(line: &str) -> AuditCommit {
    let mut fields = line.split('\0');
    let mut next = || fields.next().unwrap_or_default();
    let id = next().to_owned();
    let (runs, actions) = (next(), next());
    let values = |field: &str| {
        let values = field.split('\u{1f}').map(str::trim);
        values
            .filter(|v| !v.is_empty())
            .map(str::to_owned)
            .collect()
    };
    AuditCommit {
        id,
        run_trailers: values(runs),
        action_trailers: values(actions),
    }
}

/// Returns whether a text is the full id of a commit.
pub(super) fn is_commit_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
