//! Reviews everything that a repository proposes: `ralph trust` and the server show and approve it.

use std::path::{Path, PathBuf};

use ralph_core::lint;
use ralph_core::repo_address::RepoAddress;
use ralph_core::task::TaskFile;
use ralph_engine::git::HostGit;

use super::selftest::load_project_config;
use crate::app::App;
use crate::config::ConfigLayers;
use crate::error::AppError;
use crate::planning::{self, TASK_FILE};
use crate::trust::{self, ReviewScope, TrustReview};

/// Reviews a directory, or a task file in it.
pub async fn review_project(
    named: &Path,
    directory: &Path,
    app: &App,
) -> Result<TrustReview, AppError> {
    let layers = ConfigLayers::for_directory(app.environment(), directory);
    let task = named_task(named, app)?;
    let mut review = TrustReview::from_files(&layers, ReviewScope::ALL)?;
    let git = app.git_read_only();
    if let Some((file, task)) = &task {
        let repository = task_repository(file, task, &git, app).await;
        let layers = (&layers, ReviewScope::ALL);
        review.add_task(file, &task.contract, repository.as_deref(), layers)?;
    }
    add_image(&mut review, directory, task.as_ref(), &git).await?;
    Ok(review)
}

/// Returns the named directory, or that of the named task file.
pub fn reviewed_directory(named: &Path) -> Result<PathBuf, AppError> {
    let directory = if named.is_dir() {
        named
    } else {
        named.parent().unwrap_or(named)
    };
    directory.canonicalize().map_err(|error| {
        AppError::usage(
            format!("cannot use `{}`", named.display()),
            error.to_string(),
            "name a repository, or a task file in one",
        )
    })
}

/// Returns the named task file, or that of the named directory if it has one. Rejects a file that a
/// run would reject.
fn named_task(named: &Path, app: &App) -> Result<Option<(PathBuf, TaskFile)>, AppError> {
    let file = if named.is_dir() {
        named.join(TASK_FILE)
    } else {
        named.to_owned()
    };
    if named.is_dir() && file.symlink_metadata().is_err() {
        return Ok(None);
    }
    let (path, bytes) = planning::read_bytes(&file, app)?;
    let report = lint::check(&bytes);
    match report.task {
        Some(task) => Ok(Some((path, task))),
        // The repository's other files can be reviewed without its task file.
        None if named.is_dir() => Ok(None),
        None => Err(AppError::usage(
            format!("cannot use the task file `{}`", file.display()),
            report
                .findings
                .first()
                .map(|finding| planning::describe_finding(finding).0)
                .unwrap_or_default(),
            format!("check it with `ralph lint {}`", file.display()),
        )),
    }
}

/// Returns the repository that a task names, if it is a local one that git can read.
async fn task_repository(
    file: &Path,
    task: &TaskFile,
    git: &HostGit,
    app: &App,
) -> Option<PathBuf> {
    let url = task.contract.repo_url.as_ref()?.as_str();
    let named = match planning::parse_address(url) {
        Ok(RepoAddress::Path(path)) => path,
        Ok(RepoAddress::Remote(repo)) => {
            let repository = PathBuf::from(repo.to_string());
            return (!trust::is_origin(&repository, app)).then_some(repository);
        }
        // Planning reports a repository that cannot be used, here and below.
        Err(_) => return None,
    };
    let path = app.environment().working_dir().join(named);
    let path = if path.is_dir() {
        path
    } else {
        file.parent()?.to_owned()
    };
    match planning::top_level(&path, git).await {
        Ok(root) => Some(root),
        Err(error) => {
            tracing::debug!(%error, "the review leaves out the task's repository");
            None
        }
    }
}

/// Adds the image of the commit that a run would start from; outside a repository, that of the
/// directory.
async fn add_image(
    review: &mut TrustReview,
    directory: &Path,
    task: Option<&(PathBuf, TaskFile)>,
    git: &HostGit,
) -> Result<(), AppError> {
    let branch = task.and_then(|(_, task)| task.contract.base_branch.as_ref());
    let branch = branch.map_or("HEAD", |branch| branch.as_str());
    if let Ok(root) = planning::top_level(directory, git).await {
        if let Some(commit) = planning::commit_at(&root, branch, git).await? {
            review
                .add_image(&root, &commit, (git, ReviewScope::ALL))
                .await;
        }
    } else {
        let config = load_project_config(directory);
        review.add_config(&config, ReviewScope::ALL);
    }
    Ok(())
}
