//! The repository and the base commit of a run.

use std::path::{Path, PathBuf};

use ralph_core::id::CommitId;
use ralph_core::image::ProjectConfig;
use ralph_core::task::TaskFile;
use ralph_engine::git::{GitError, HostGit};
use ralph_engine::journal::RunOutline;
use ralph_engine::linked_worktrees::LinkedWorktrees;

use super::repository;
use crate::app::App;
use crate::error::AppError;
use crate::format;
use crate::planning::RunRequest;
use crate::providers::Providers;

/// The repository that a run starts from.
pub struct SourceRepository {
    /// The top level of the work tree, or a bare repository.
    pub path: PathBuf,
    /// The branch that the run starts from.
    pub base_branch: String,
    /// The commit of the base branch.
    pub base: CommitId,
}

impl SourceRepository {
    /// Finds the repository of a request or a task, and its base commit. Rejects an incomplete history.
    pub async fn find(
        request: &RunRequest,
        task: &TaskFile,
        file: &Path,
        git: &HostGit,
        app: &App,
    ) -> Result<Self, AppError> {
        let named = request.repo.clone().or_else(|| {
            task.contract
                .repo_url
                .as_ref()
                .map(|url| url.as_str().to_owned())
        });
        let path = match named {
            Some(named) => local_path(&named, app.environment().working_dir())?,
            None => file.parent().unwrap_or(Path::new("/")).to_owned(),
        };
        let path = top_level(&path, git).await?;
        let base_branch = match &task.contract.base_branch {
            Some(branch) => branch.as_str().to_owned(),
            None => current_branch(&path, git).await?,
        };
        let base = base_commit(&path, &base_branch, git).await?;
        repository::require_complete_history(&path, &base_branch, git).await?;
        Ok(Self {
            path,
            base_branch,
            base,
        })
    }

    /// Returns the differences between the user's working directory and a sandbox.
    pub(crate) async fn notices(&self, git: &HostGit, task_file: &Path) -> Vec<String> {
        let mut notices = self.uncommitted(git, task_file).await;
        notices.extend(self.uncommitted_image_files(git).await);
        notices.extend(repository::work_tree_notices(&self.path, &self.base, git).await);
        notices
    }

    /// Reports changes of the files that define the image, which are read at the base commit.
    async fn uncommitted_image_files(&self, git: &HostGit) -> Option<String> {
        let directory = ProjectConfig::DIRECTORY;
        let arguments = [
            "status",
            "--porcelain",
            "--untracked-files=all",
            "--",
            directory,
        ];
        let status = match git.run_as_user(&self.path, &arguments).await {
            Ok(status) => status,
            Err(error) => {
                // A bare repository has no work tree.
                tracing::debug!(%error, "no uncommitted files of `{directory}` are known");
                return None;
            }
        };
        // Settings of ralph are read from the working directory.
        let settings = format!("{directory}/config.json");
        let mut changed = status.lines().filter_map(|line| line.get(3..));
        changed.any(|path| path != settings).then(|| {
            format!(
                "uncommitted files in `{directory}/` are not used: the image is defined by commit {}",
                self.base.short()
            )
        })
    }

    /// Reports the parts of the user's working directory that are not copied.
    async fn uncommitted(&self, git: &HostGit, task_file: &Path) -> Vec<String> {
        let arguments = ["status", "--porcelain", "--untracked-files=no"];
        let status = match git.run_as_user(&self.path, &arguments).await {
            Ok(status) => status,
            Err(error) => {
                // A bare repository has no work tree.
                tracing::debug!(%error, "no uncommitted changes are known");
                return Vec::new();
            }
        };
        let task_path = task_file.strip_prefix(&self.path);
        let task_path = task_path.map_or_else(|_| String::new(), |path| path.display().to_string());
        let dirty = status
            .lines()
            .filter(|line| line.get(3..) != Some(task_path.as_str()))
            .count();
        if dirty == 0 {
            return Vec::new();
        }
        let files = format::plural(dirty as u64, "uncommitted change", "uncommitted changes");
        vec![format!(
            "not part of this run: {files} in `{}`; the work starts from commit {}",
            self.path.display(),
            self.base.short()
        )]
    }
}

/// Returns the path of a repository that is named by path or `file://` URL.
pub fn local_path(named: &str, directory: &Path) -> Result<PathBuf, AppError> {
    let remote = named.contains("://") && !named.starts_with("file://");
    if remote || named.starts_with("git@") {
        let shown = named.rsplit('@').next().unwrap_or(named);
        return Err(AppError::usage(
            format!("repository `{shown}` is not available"),
            "this version supports only repositories on this machine",
            "clone it, then use `--repo PATH`",
        ));
    }
    Ok(directory.join(named.trim_start_matches("file://")))
}

/// Returns the top level of the repository that contains a directory.
pub async fn top_level(path: &Path, git: &HostGit) -> Result<PathBuf, AppError> {
    if !path.is_dir() {
        return Err(repository::no_repository(path, "no such directory"));
    }
    repository::require_utf8_path(path)?;
    let top = match git
        .run_as_user(path, &["rev-parse", "--show-toplevel"])
        .await
    {
        Ok(top) => top,
        // A bare repository has no work tree; its directory is the top level.
        Err(_) => git
            .run_as_user(path, &["rev-parse", "--absolute-git-dir"])
            .await
            .map_err(|error| repository::unreadable(path, &error))?,
    };
    let top = PathBuf::from(top.trim_end_matches('\n'));
    top.canonicalize()
        .map_err(|error| repository::no_repository(path, error.to_string()))
}

/// Returns the checked-out branch.
pub(crate) async fn current_branch(path: &Path, git: &HostGit) -> Result<String, AppError> {
    let branch = git
        .run_as_user(path, &["symbolic-ref", "--quiet", "--short", "HEAD"])
        .await
        .map_err(|error| {
            // Git fails without a message if no branch is checked out.
            if !matches!(error, GitError::Failed { .. }) {
                return repository::unreadable(path, &error);
            }
            AppError::runtime(
                format!("no branch is checked out in `{}`", path.display()),
                "the work needs a branch to start from",
                "check one out, or set `base_branch` in the task file",
            )
        })?;
    if branch.contains(char::REPLACEMENT_CHARACTER) {
        return Err(AppError::runtime(
            format!("the branch in `{}` cannot be used", path.display()),
            "its name is not UTF-8",
            "check out another branch, or set `base_branch` in the task file",
        ));
    }
    Ok(branch.trim().to_owned())
}

/// Returns the commit of a revision, if it exists.
pub async fn commit_at(
    path: &Path,
    revision: &str,
    git: &HostGit,
) -> Result<Option<CommitId>, AppError> {
    let revision = format!("{revision}^{{commit}}");
    let found = git
        .run_as_user(path, &["rev-parse", "--verify", "--quiet", &revision])
        .await;
    match found {
        Ok(id) => Ok(CommitId::parse(id.trim())),
        // Git fails without a message if there is no such revision.
        Err(GitError::Failed { .. }) => Ok(None),
        Err(error) => Err(repository::unreadable(path, &error)),
    }
}

/// Returns the commit of a branch.
pub(crate) async fn base_commit(
    path: &Path,
    branch: &str,
    git: &HostGit,
) -> Result<CommitId, AppError> {
    let reference = format!("refs/heads/{branch}");
    if let Some(commit) = commit_at(path, &reference, git).await? {
        return Ok(commit);
    }
    let empty = git
        .run_as_user(path, &["rev-list", "--all", "--max-count=1"])
        .await
        .is_ok_and(|text| text.is_empty());
    Err(if empty {
        AppError::runtime(
            format!("repository `{}` has no commits", path.display()),
            "there is nothing to start from",
            "create a first commit",
        )
    } else {
        AppError::runtime(
            format!("there is no branch `{branch}` in `{}`", path.display()),
            "the work needs a branch to start from",
            "correct `base_branch` in the task file, or create the branch",
        )
    })
}

/// Returns the wanted branch name, or the first unused one with the suffix `-v2`, `-v3`…
pub(crate) async fn free_branch(
    wanted: &str,
    repo: &Path,
    git: &HostGit,
    providers: &Providers,
) -> Result<String, AppError> {
    let mut taken: Vec<String> = git
        .run_as_user(
            repo,
            &[
                "for-each-ref",
                "--format=%(refname:lstrip=2)",
                "refs/heads/",
            ],
        )
        .await
        .map_err(|error| repository::unreadable(repo, &error))?
        .lines()
        .map(str::to_owned)
        .collect();
    let worktrees = LinkedWorktrees::find(repo);
    for id in providers.state.runs()? {
        let outline = RunOutline::read(&providers.state.run(&id).journal());
        if outline.is_of_any(&worktrees) {
            taken.extend(outline.branch);
        }
    }
    let numbered = (2..).map(|number| format!("{wanted}-v{number}"));
    let free = std::iter::once(wanted.to_owned())
        .chain(numbered)
        .find(|name| !taken.contains(name));
    Ok(free.unwrap_or_else(|| wanted.to_owned()))
}
