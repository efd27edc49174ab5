//! The pull request of a run: its record on this machine, or the one of its source host.

use std::path::PathBuf;

use ralph_core::event::DeliveryEvent;
use ralph_core::id::RunId;
use ralph_core::plan::RunPlan;
use ralph_core::ports::{PullRequest, PullState};
use ralph_core::state::RunState;
use ralph_engine::file_digests;
use ralph_engine::git::{GitError, UserRepository};
use ralph_engine::journal::Journal;
use ralph_engine::store::RunDir;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::AppError;
use crate::planning::pinned_settings;
use crate::providers::PullRecord;
use crate::scm;

/// A pull request with its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PullRequestReport {
    pub run: RunId,
    pub number: u64,
    pub state: PullState,
    pub title: String,
    /// Markdown; `None` if only the source host has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The branch to merge.
    pub head: String,
    /// The target branch.
    pub base: String,
    pub commit: String,
    pub labels: Vec<String>,
    pub url: String,
    /// `None` if only the source host knows it, here and below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opened_at: Option<jiff::Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<jiff::Timestamp>,
}

/// Returns the pull request of a run with its present state.
pub async fn pull_request(
    dir: &RunDir,
    state: &mut RunState,
    app: &App,
) -> Result<PullRequestReport, AppError> {
    close_if_merged(dir, state, app).await;
    let Some(pull) = &state.pull else {
        let run = &state.plan.run;
        return Err(AppError::refused(
            format!("run `{run}` has no pull request"),
            "one is opened when its first commits are delivered, unless the task sets `pr.enabled: false`",
            format!("see the changes with `ralph diff {run}`"),
        ));
    };
    if state.plan.remote_repository().is_some() {
        return Ok(remote_pull_request(state, pull, app).await);
    }
    let PullRecord {
        number,
        head,
        base,
        commit,
        title,
        body,
        labels,
        opened_at,
        updated_at,
        ..
    } = app.providers()?.pull_record(pull)?;
    Ok(PullRequestReport {
        run: state.plan.run.clone(),
        number,
        // The journal may already know that the branch was merged, while a process works on the run.
        state: pull.state,
        title,
        body: Some(body),
        head,
        base,
        commit: commit.to_string(),
        labels,
        url: pull.url.clone(),
        opened_at: Some(opened_at),
        updated_at: Some(updated_at),
    })
}

/// Returns the pull request of a run on a source host. If the host cannot be asked, it has the state
/// that the run knows.
async fn remote_pull_request(
    state: &RunState,
    known: &PullRequest,
    app: &App,
) -> PullRequestReport {
    let plan = &state.plan;
    let pull = match current_pull(plan, known, app).await {
        Ok(pull) => pull,
        Err(error) => {
            tracing::warn!(%error, "the state of the pull request is the last known one");
            known.clone()
        }
    };
    PullRequestReport {
        run: plan.run.clone(),
        number: pull.number,
        state: pull.state,
        title: plan.title.clone(),
        body: None,
        head: plan.branch.clone(),
        base: plan.base_branch.clone(),
        commit: pull.head.to_string(),
        labels: Vec::new(),
        url: pull.url,
        opened_at: None,
        updated_at: None,
    }
}

async fn current_pull(
    plan: &RunPlan,
    known: &PullRequest,
    app: &App,
) -> Result<PullRequest, AppError> {
    let (_, app) = pinned_settings::for_existing_run(plan, app)?;
    scm::connect_for_plan(plan, &app).await?;
    let (scm, _) = app.providers()?.source_host(plan)?;
    let Some(host) = scm.source_host() else {
        return Ok(known.clone());
    };
    let pull = host.pull(known.number).await;
    pull.map_err(|error| AppError::runtime("cannot read the pull request", error.to_string(), ""))
}

/// Closes the pull request as merged if its commit is part of the target branch by now. Only the
/// displayed state changes while a process works on the run.
pub async fn close_if_merged(dir: &RunDir, state: &mut RunState, app: &App) {
    let Some(pull) = state.pull.clone() else {
        return;
    };
    let is_open = !pull.state.is_closed() && pull.head != state.plan.base;
    if !is_open || state.plan.scm != "local" {
        return;
    }
    match is_merged(&state.plan, &pull, app).await {
        Ok(true) => {}
        Ok(false) => return,
        Err(error) => {
            tracing::debug!(%error, "cannot find out whether the pull request was merged");
            return;
        }
    }
    if !dir.is_held() {
        let recorded = record_merged(dir, app).await;
        if let Err(error) = recorded {
            tracing::warn!(%error, "cannot close the merged pull request");
        }
    }
    state.pull = Some(PullRequest {
        state: PullState::Merged,
        ..pull
    });
}

async fn record_merged(dir: &RunDir, app: &App) -> Result<(), AppError> {
    let mut journal = Journal::open(dir, app.clock(), app.redactor())?;
    set_pull_state(dir, &mut journal, PullState::Merged, app).await
}

async fn is_merged(plan: &RunPlan, pull: &PullRequest, app: &App) -> Result<bool, AppError> {
    let repository = user_repository(plan, app)?;
    let unreadable = |error| repository_error(plan, "read", &error);
    let base = repository.branch_head(&plan.base_branch).await;
    let Some(base) = base.map_err(unreadable)? else {
        return Ok(false);
    };
    if repository
        .is_ancestor(&pull.head, &base)
        .await
        .map_err(unreadable)?
    {
        return Ok(true);
    }
    // A squashed or rebased merge has other commits.
    let applied = repository.contains_changes(&pull.head, &base).await;
    applied.map_err(unreadable)
}

/// Sets the state of the run's pull request, if it has one: first its record, then the journal.
pub(super) async fn set_pull_state(
    dir: &RunDir,
    journal: &mut Journal,
    to: PullState,
    app: &App,
) -> Result<(), AppError> {
    let state = journal.state();
    let Some(pull) = state.pull.clone().filter(|pull| pull.state != to) else {
        return Ok(());
    };
    let scm = app.providers()?.local_scm(&state.plan)?;
    let changed = scm.set_state(pull.number, to).await.map_err(|error| {
        AppError::runtime(
            format!("cannot update pull request #{}", pull.number),
            error.to_string(),
            "fix the problem, then try again",
        )
    })?;
    journal.append(DeliveryEvent::PullRequestUpdated {
        // The address may have changed with the state directory; the run keeps the known one.
        pull: PullRequest {
            state: changed.state,
            ..pull
        },
        opened: false,
    })?;
    record_files(dir, journal)
}

/// Records the run's files again, because one of them was changed on the user's request.
pub(super) fn record_files(dir: &RunDir, journal: &mut Journal) -> Result<(), AppError> {
    if let Some(recorded) = file_digests::files_event(dir, journal.state()) {
        journal.append(recorded)?;
    }
    Ok(())
}

/// Returns the repository that the run's branch was pushed to.
pub(super) fn user_repository(plan: &RunPlan, app: &App) -> Result<UserRepository, AppError> {
    let path = PathBuf::from(&plan.repo);
    if !path.is_dir() {
        return Err(AppError::runtime(
            format!("cannot use the repository `{}`", plan.repo),
            "it does not exist",
            "move it back, then try again",
        ));
    }
    Ok(UserRepository::new(app.providers()?.git()?, path))
}

/// Returns the error of a git command in the user's repository.
pub(super) fn repository_error(plan: &RunPlan, verb: &str, error: &GitError) -> AppError {
    AppError::runtime(
        format!("cannot {verb} `{}`", plan.repo),
        error.to_string(),
        "fix the problem that git reports, then try again",
    )
}
