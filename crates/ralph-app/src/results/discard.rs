//! Discards the result of a run: its branch, its sandboxes and its pull request.

use ralph_core::event::{DeliveryEvent, SandboxEvent};
use ralph_core::id::{CommitId, RunId};
use ralph_core::ports::PullState;
use ralph_core::run::Command;
use ralph_core::state::RunState;
use ralph_engine::git::GitError;
use ralph_engine::journal::Journal;
use ralph_engine::store::RunDir;
use serde::Serialize;
use utoipa::ToSchema;

use super::pull_request::{
    close_if_merged, record_files, repository_error, set_pull_state, user_repository,
};
use crate::app::App;
use crate::error::AppError;
use crate::prune::RunSandboxes;
use crate::steering;

/// The removed parts of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DiscardReport {
    pub run: RunId,
    /// The branch and its commit, if it was there.
    pub branch: Option<(String, CommitId)>,
    pub sandboxes: Vec<String>,
    /// The number of the closed pull request.
    pub pull: Option<u64>,
    /// The branch and the pull request of a source host, which stay there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining: Option<RemainingOnHost>,
}

/// The results of a discarded run on a source host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RemainingOnHost {
    pub repo: String,
    /// The pushed branch.
    pub branch: String,
    /// The address of the pull request.
    pub pull: Option<String>,
}

/// Removes branch and sandboxes of a run that no process works on, and closes its pull request. On a
/// source host, nothing is removed or closed: others may use it already. An unfinished run is stopped
/// first. Repeating it completes an interrupted removal.
pub async fn discard_run(query: &str, app: &App) -> Result<DiscardReport, AppError> {
    let dir = app.find_run(query)?;
    let mut state = dir.state()?;
    if dir.is_held() {
        return Err(AppError::refused(
            format!("cannot discard run `{}`", state.plan.run),
            steering::describe_owner(&state),
            format!("stop it first: `ralph stop {}`", state.plan.run),
        ));
    }
    // While the branch exists, its changes can be found in the base branch.
    close_if_merged(&dir, &mut state, app).await;
    let branch = removable_branch(&state, app).await?;
    if !state.status.is_final() {
        Box::pin(steering::steer(query, &Command::Stop, app)).await?;
    }
    let mut journal = Journal::open(&dir, app.clock(), app.redactor())?;
    let plan = journal.state().plan.clone();
    let sandboxes = remove_sandboxes(&mut journal, app).await?;
    if let Some((name, commit)) = &branch {
        let repository = user_repository(&plan, app)?;
        let removed = repository.remove_branch(name, commit).await;
        removed.map_err(|error| repository_error(&plan, "remove the branch in", &error))?;
    }
    let is_remote = plan.remote_repository().is_some();
    let is_merged = has_merged_pull(journal.state());
    if !is_remote && !is_merged {
        set_pull_state(&dir, &mut journal, PullState::Closed, app).await?;
    }
    if !journal.state().discarded {
        journal.append(DeliveryEvent::Discarded {
            branch: plan.branch.clone(),
        })?;
        record_files(&dir, &mut journal)?;
    }
    Ok(DiscardReport {
        run: plan.run,
        branch,
        sandboxes,
        pull: journal
            .state()
            .pull
            .as_ref()
            .map(|pull| pull.number)
            .filter(|_| !is_remote && !is_merged),
        remaining: remaining_on_host(&state),
    })
}

/// Returns whether the run's pull request was merged; it stays so.
fn has_merged_pull(state: &RunState) -> bool {
    let pull = state.pull.as_ref();
    pull.is_some_and(|pull| pull.state == PullState::Merged)
}

fn remaining_on_host(state: &RunState) -> Option<RemainingOnHost> {
    let repo = state.plan.remote_repository()?;
    state.pushed.as_ref()?;
    Some(RemainingOnHost {
        repo: repo.to_string(),
        branch: state.plan.branch.clone(),
        pull: state.pull.as_ref().map(|pull| pull.url.clone()),
    })
}

/// Removes the sandboxes of a run that has ended, and returns their names.
pub async fn remove_ended_sandboxes(dir: &RunDir, app: &App) -> Result<Vec<String>, AppError> {
    let mut journal = Journal::open(dir, app.clock(), app.redactor())?;
    let removed = remove_sandboxes(&mut journal, app).await?;
    record_files(dir, &mut journal)?;
    Ok(removed)
}

/// Returns the run's branch in the user's repository, if it exists and has only the run's commits.
async fn removable_branch(
    state: &RunState,
    app: &App,
) -> Result<Option<(String, CommitId)>, AppError> {
    let plan = &state.plan;
    let (Some(pushed), true) = (&state.pushed, std::path::Path::new(&plan.repo).is_dir()) else {
        return Ok(None);
    };
    let repository = user_repository(plan, app)?;
    let failed = |error: GitError| repository_error(plan, "read", &error);
    let Some(head) = repository.branch_head(&plan.branch).await.map_err(failed)? else {
        return Ok(None);
    };
    let refused = |why: String, fix: String| {
        let what = format!("cannot discard branch `{}`", plan.branch);
        Err(AppError::refused(what, why, fix))
    };
    if head != *pushed {
        return refused(
            format!(
                "it is at {}, but the run pushed {}",
                head.short(),
                pushed.short()
            ),
            format!(
                "remove it with `git branch -D {}`, then try again",
                plan.branch
            ),
        );
    }
    let worktree = repository.worktree_with(&plan.branch).await;
    if let Some(worktree) = worktree.map_err(failed)? {
        return refused(
            format!("it is checked out in `{}`", worktree.display()),
            "check out another branch there, then try again".to_owned(),
        );
    }
    Ok(Some((plan.branch.clone(), head)))
}

async fn remove_sandboxes(journal: &mut Journal, app: &App) -> Result<Vec<String>, AppError> {
    let state = journal.state();
    let providers = app.providers()?;
    let plan = &state.plan;
    let found = RunSandboxes::find(&plan.run, plan.container.as_ref(), &providers).await?;
    // Recorded first: a partly removed sandbox must not be used again.
    if let Some(sandbox) = state.sandbox.clone() {
        journal.append(SandboxEvent::SandboxRemoved { sandbox })?;
    }
    for sandbox in journal.state().clean_rooms.clone() {
        journal.append(SandboxEvent::SandboxRemoved { sandbox })?;
    }
    found.remove().await
}
