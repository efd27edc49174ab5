//! The repository and the base commit of a run.
//!
//! `--repo` and `repo_url` are addresses: a URL, `owner/name` on github.com, or a path; a path of two parts
//! starts with `./`. Without them, the repository is the one that contains the task file.

use std::path::{Path, PathBuf};

use ralph_core::id::CommitId;
use ralph_core::image::ProjectConfig;
use ralph_core::repo_address::RepoAddress;
use ralph_core::submodule::{Submodule, readable_submodules};
use ralph_core::task::{RepoUrl, TaskFile};
use ralph_engine::git::{GitError, HostGit};
use ralph_engine::journal::RunOutline;
use ralph_engine::linked_worktrees::LinkedWorktrees;

use super::remote_source::find_remote;
use super::repository;
use crate::app::App;
use crate::config::Environment;
use crate::error::AppError;
use crate::format;
use crate::planning::RunRequest;
use crate::providers::{Providers, RemoteSource};

/// The repository that a run starts from.
#[derive(Debug, Clone)]
pub struct SourceRepository {
    /// The top level of the work tree, a bare repository, or the mirror of a repository on a source
    /// host.
    pub path: PathBuf,
    /// The branch that the run starts from.
    pub base_branch: String,
    /// The commit of the base branch.
    pub base: CommitId,
    /// `None` for a repository on this machine.
    pub remote: Option<RemoteSource>,
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
        let path = match Self::address(request, task) {
            Some(named) => match parse_address(named)? {
                RepoAddress::Remote(repo) => {
                    let base = task.contract.base_branch.as_ref();
                    let wanted = task.contract.branch(task.title.as_deref());
                    return Ok(find_remote(&repo, (base, wanted), app).await?.into());
                }
                RepoAddress::Path(path) => expand_path(&path, app.environment()),
            },
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
            remote: None,
        })
    }

    /// Returns the address that the user or the task names.
    fn address<'a>(request: &'a RunRequest, task: &'a TaskFile) -> Option<&'a str> {
        let url = task.contract.repo_url.as_ref();
        request.repo.as_deref().or(url.map(RepoUrl::as_str))
    }

    /// Returns whether the repository of a request or a task is on a source host.
    pub(crate) fn is_remote(request: &RunRequest, task: &TaskFile) -> bool {
        let address = Self::address(request, task).map(RepoAddress::parse);
        matches!(address, Some(Ok(RepoAddress::Remote(_))))
    }

    /// Returns the repository as the plan names it: its path, or its address on a source host.
    pub fn location(&self) -> String {
        match &self.remote {
            Some(remote) => remote.repo.to_string(),
            None => self.path.to_string_lossy().into_owned(),
        }
    }

    /// Returns the submodules that commands may read from the source host.
    pub(crate) async fn readable_submodules(&self, git: &HostGit) -> Vec<Submodule> {
        let Some(remote) = &self.remote else {
            return Vec::new();
        };
        let named = repository::named_submodules(&self.path, &self.base, git).await;
        readable_submodules(named, &remote.repo)
    }

    /// Returns the differences between the user's working directory and a sandbox.
    pub(crate) async fn notices(&self, git: &HostGit, task_file: &Path) -> Vec<String> {
        if let Some(remote) = &self.remote {
            let mut notices = remote.notices.clone();
            notices.extend(repository::work_tree_notices(&self.path, &self.base, git).await);
            return notices;
        }
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

impl From<RemoteSource> for SourceRepository {
    fn from(remote: RemoteSource) -> Self {
        Self {
            path: remote.mirror.clone(),
            base_branch: remote.base_branch.clone(),
            base: remote.base.clone(),
            remote: Some(remote),
        }
    }
}

/// Parses the address of a repository that the user wrote. The error does not repeat a password.
pub fn parse_address(named: &str) -> Result<RepoAddress, AppError> {
    RepoAddress::parse(named).map_err(|error| {
        let shown = named.rsplit('@').next().unwrap_or(named);
        AppError::usage(
            format!("`{shown}` is not the address of a repository"),
            error.to_string(),
            "write `https://HOST/OWNER/NAME`, `OWNER/NAME` for github.com, or a path such as `./NAME`",
        )
    })
}

/// Returns the address of a repository that the user wrote, with an absolute path.
pub(crate) fn find_address(
    named: &str,
    environment: &Environment,
) -> Result<RepoAddress, AppError> {
    Ok(match parse_address(named)? {
        RepoAddress::Path(path) => {
            let path = expand_path(&path, environment);
            RepoAddress::Path(path.to_string_lossy().into_owned())
        }
        remote @ RepoAddress::Remote(_) => remote,
    })
}

/// Returns the path of a repository on this machine. Rejects one on a source host; `purpose` is the
/// operation that needs the files.
pub fn local_path(
    named: &str,
    environment: &Environment,
    purpose: &str,
) -> Result<PathBuf, AppError> {
    match parse_address(named)? {
        RepoAddress::Path(path) => Ok(expand_path(&path, environment)),
        RepoAddress::Remote(repo) => Err(AppError::usage(
            format!("repository `{repo}` cannot be used here"),
            format!("{purpose} needs a repository on this machine"),
            format!(
                "clone it and use `--repo PATH`; for a path, write `./{}`",
                repo.full_name()
            ),
        )),
    }
}

/// Returns the absolute path of a path that the user wrote.
fn expand_path(path: &str, environment: &Environment) -> PathBuf {
    let path = Path::new(path);
    match (path.strip_prefix("~"), environment.home()) {
        (Ok(rest), Some(home)) => home.join(rest),
        (Ok(_) | Err(_), _) => environment.working_dir().join(path),
    }
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

/// Returns the wanted branch name, or the first unused one with the suffix `-v2`, `-v3`… `taken` are the
/// branches of a source host; those of a repository on this machine are read.
pub(crate) async fn free_branch(
    wanted: &str,
    (repo, taken): (&str, Option<&[String]>),
    git: &HostGit,
    providers: &Providers,
) -> Result<String, AppError> {
    let mut taken = match taken {
        Some(taken) => taken.to_vec(),
        None => branches(Path::new(repo), git).await?,
    };
    let worktrees = LinkedWorktrees::find(Path::new(repo));
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

async fn branches(repo: &Path, git: &HostGit) -> Result<Vec<String>, AppError> {
    let args = [
        "for-each-ref",
        "--format=%(refname:lstrip=2)",
        "refs/heads/",
    ];
    let listed = git.run_as_user(repo, &args).await;
    let listed = listed.map_err(|error| repository::unreadable(repo, &error))?;
    Ok(listed.lines().map(str::to_owned).collect())
}
