//! What a new task is based on.

use std::path::{Path, PathBuf};

use ralph_core::ecosystem::DetectedProject;
use ralph_core::task::{BranchName, NewTask, TaskSentence};
use ralph_engine::git::HostGit;

use super::project_files::detect_in;
use super::sandbox_status::SandboxStatus;
use super::worker_choice::WorkerChoice;
use crate::app::App;
use crate::error::AppError;
use crate::planning::{base_commit, current_branch, require_git, secrets, top_level};

/// The repository that contains the working directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RepositoryStatus {
    /// A run can start from it.
    Ready {
        /// Its top level.
        path: PathBuf,
        /// The branch that `origin` considers its default, or else the checked-out one.
        default_branch: BranchName,
    },
    /// A run cannot start for this reason.
    Unusable(AppError),
}

/// The repository, the tests, the sandbox and the worker of a new task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectInspection {
    pub repository: RepositoryStatus,
    pub project: DetectedProject,
    pub sandbox: SandboxStatus,
    pub worker: WorkerChoice,
}

impl ProjectInspection {
    /// Inspects the working directory and this machine. Changes nothing.
    pub async fn of_working_dir(app: &App) -> Result<Self, AppError> {
        let directory = app.environment().working_dir();
        let repository = find_repository(directory, &app.git_read_only()).await;
        let top = match &repository {
            RepositoryStatus::Ready { path, .. } => path,
            RepositoryStatus::Unusable(_) => directory,
        };
        let project = detect_nearest(directory, top);
        let sandbox = SandboxStatus::find(app).await?;
        let worker = WorkerChoice::find(sandbox.name(), app).await?;
        Ok(Self {
            repository,
            project,
            sandbox,
            worker,
        })
    }

    /// Returns the text of a task file for this project.
    pub fn task_text(&self, sentence: Option<TaskSentence>, app: &App) -> Result<String, AppError> {
        let base_branch = match &self.repository {
            RepositoryStatus::Ready { default_branch, .. } => Some(default_branch.clone()),
            RepositoryStatus::Unusable(_) => None,
        };
        let task = NewTask {
            sentence,
            comment: None,
            base_branch,
            test_commands: self.project.test_commands.clone(),
            setup_command: self.project.setup_command.clone(),
            sandbox: self.sandbox.task_value(),
            worker: self.worker.task_value(),
            spending: self.worker.spending(),
        };
        new_text(&task, app)
    }
}

/// Parses the user's sentence.
pub fn parse_sentence(text: &str) -> Result<TaskSentence, AppError> {
    TaskSentence::parse(text).map_err(|error| {
        AppError::usage(
            "cannot make a task from this sentence",
            error.to_string(),
            "describe the result in one sentence; more belongs in a task file, which `ralph init` writes",
        )
    })
}

/// Returns the text of a new task, which must not contain a known secret.
pub(super) fn new_text(task: &NewTask, app: &App) -> Result<String, AppError> {
    let text = task.to_text().map_err(|finding| {
        AppError::usage(
            "cannot make a task of these values",
            finding.message,
            "write the task file yourself: `ralph init --full` writes every common key",
        )
    })?;
    secrets::refuse_in_task(&text, &app.redactor())?;
    Ok(text)
}

/// Finds the tests of a directory, or else those of the repository's top level.
pub(super) fn detect_nearest(directory: &Path, top: &Path) -> DetectedProject {
    let directory = directory
        .canonicalize()
        .unwrap_or_else(|_| directory.to_owned());
    let top = top.canonicalize().unwrap_or_else(|_| top.to_owned());
    let nearest = detect_in(&directory, &top);
    if nearest.test_commands.is_empty() && directory != top {
        return detect_in(&top, &top);
    }
    nearest
}

async fn find_repository(directory: &Path, git: &HostGit) -> RepositoryStatus {
    match inspect_repository(directory, git).await {
        Ok((path, default_branch)) => RepositoryStatus::Ready {
            path,
            default_branch,
        },
        Err(error) => RepositoryStatus::Unusable(error),
    }
}

async fn inspect_repository(
    directory: &Path,
    git: &HostGit,
) -> Result<(PathBuf, BranchName), AppError> {
    require_git(git).await?;
    let path = top_level(directory, git).await?;
    let branch = match default_of_origin(&path, git).await {
        Some(branch) => branch,
        None => current_branch(&path, git).await?,
    };
    base_commit(&path, &branch, git).await?;
    let name = BranchName::parse(&branch).map_err(|rule| {
        AppError::runtime(
            format!("branch `{branch}` cannot be used"),
            format!("its name {rule}"),
            "check out another branch",
        )
    })?;
    Ok((path, name))
}

/// Returns the default branch of `origin` if it exists here.
async fn default_of_origin(path: &Path, git: &HostGit) -> Option<String> {
    let arguments = [
        "symbolic-ref",
        "--quiet",
        "--short",
        "refs/remotes/origin/HEAD",
    ];
    let Ok(name) = git.run_as_user(path, &arguments).await else {
        // Git fails if there is no such reference.
        return None;
    };
    let branch = name.trim().strip_prefix("origin/")?.to_owned();
    match base_commit(path, &branch, git).await {
        Ok(_) => Some(branch),
        Err(_) => None,
    }
}
