//! Explains errors of a source host and of git's access to it.

use ralph_core::ports::ScmError;
use ralph_core::repo_address::RemoteRepo;
use ralph_engine::git::GitError;

use crate::error::AppError;

/// Returns the error of an operation of a source host.
pub(crate) fn host_error(repo: &RemoteRepo, error: &ScmError) -> AppError {
    let fix = match error {
        ScmError::Host(error) => error.kind.fix(),
        ScmError::CheckedOut { .. } | ScmError::Io { .. } | ScmError::Damaged { .. } => {
            format!("check it with `ralph scm check {repo}`")
        }
    };
    AppError::runtime(format!("cannot use `{repo}`"), error.to_string(), fix)
}

/// Returns the error of a git command that reads a repository on a source host.
pub(crate) fn remote_git_error(repo: &RemoteRepo, error: &GitError) -> AppError {
    if let GitError::Login(error) = error {
        return host_error(repo, error);
    }
    AppError::runtime(
        format!("cannot read `{repo}`"),
        error.to_string(),
        format!("check the name, the network and the access with `ralph scm check {repo}`"),
    )
}
