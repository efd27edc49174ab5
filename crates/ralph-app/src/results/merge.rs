//! Merges a run's branch into its base branch, in the user's repository.

use std::path::PathBuf;

use ralph_core::id::{CommitId, RunId};
use ralph_core::ports::{PullState, Scm as _};
use ralph_core::run::RunStatus;
use ralph_core::state::RunState;
use ralph_engine::git::{GitError, MergeResult, UserRepository};
use ralph_engine::journal::Journal;
use serde::Serialize;
use utoipa::ToSchema;

use super::pull_request::{repository_error, set_pull_state, user_repository};
use crate::app::App;
use crate::error::AppError;

/// The most conflicting files that an error names.
const MAX_NAMED_FILES: usize = 5;

/// Whether the user accepts commits that no clean room has verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeConsent {
    /// Only the verified commit of a run that succeeded is merged.
    VerifiedOnly,
    /// The branch is merged as it is.
    Unverified,
}

/// How the base branch got the commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MergeKind {
    /// It had not moved since.
    FastForward,
    /// Both had moved; a merge commit joins them.
    MergeCommit,
    /// It contained them before.
    AlreadyMerged,
}

/// A merged branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct MergeReport {
    pub run: RunId,
    pub branch: String,
    /// The branch that was merged into.
    pub base: String,
    /// The commit of the base branch.
    pub commit: CommitId,
    pub kind: MergeKind,
    /// The working tree that was updated, if the base branch is checked out.
    #[schema(value_type = Option<String>)]
    pub worktree: Option<PathBuf>,
    /// The number of the pull request that is merged now.
    pub pull: Option<u64>,
}

/// Merges the branch of a run that no process works on.
pub async fn merge_run(
    query: &str,
    consent: MergeConsent,
    app: &App,
) -> Result<MergeReport, AppError> {
    let dir = app.find_run(query)?;
    refuse_remote(&dir.state()?)?;
    // Opened first, so that no process can continue the run meanwhile.
    let mut journal = Journal::open(&dir, app.clock(), app.redactor())?;
    let state = journal.state();
    let plan = state.plan.clone();
    let repository = user_repository(&plan, app)?;
    let failed = |error: GitError| repository_error(&plan, "merge in", &error);
    let head = repository.branch_head(&plan.branch).await.map_err(failed)?;
    let head = head.ok_or_else(|| no_branch(state, &plan.branch))?;
    require_verified(state, &head, consent)?;
    let base = repository.branch_head(&plan.base_branch).await;
    let base = base
        .map_err(failed)?
        .ok_or_else(|| no_branch(state, &plan.base_branch))?;
    let merge = BranchMerge {
        state,
        repository: &repository,
        base,
        head,
    };
    let (kind, commit, worktree) = merge.perform().await?;
    let scm = app.providers()?.local_scm(&plan)?;
    // Before the record, so that a power failure cannot undo what it names.
    scm.sync()
        .await
        .map_err(|error| AppError::runtime("cannot sync the merge", error.to_string(), ""))?;
    set_pull_state(&dir, &mut journal, PullState::Merged, app).await?;
    Ok(MergeReport {
        run: plan.run,
        branch: plan.branch,
        base: plan.base_branch,
        commit,
        kind,
        worktree,
        pull: journal.state().pull.as_ref().map(|pull| pull.number),
    })
}

/// Rejects a run whose pull request is on a source host: its rules and reviews apply there.
fn refuse_remote(state: &RunState) -> Result<(), AppError> {
    let plan = &state.plan;
    let Some(repo) = plan.remote_repository() else {
        return Ok(());
    };
    let fix = match &state.pull {
        Some(pull) => format!("merge it at {}", pull.url),
        None => format!("merge branch `{}` at {repo}", plan.branch),
    };
    Err(AppError::usage(
        format!("cannot merge run `{}` from here", plan.run),
        format!(
            "its repository is on {}, where reviews and branch rules apply",
            repo.host()
        ),
        fix,
    ))
}

/// A branch and the commits to merge.
struct BranchMerge<'a> {
    state: &'a RunState,
    repository: &'a UserRepository,
    base: CommitId,
    head: CommitId,
}

impl BranchMerge<'_> {
    async fn perform(&self) -> Result<(MergeKind, CommitId, Option<PathBuf>), AppError> {
        let Self {
            state,
            repository,
            base,
            head,
        } = self;
        let plan = &state.plan;
        let failed = |error: GitError| repository_error(plan, "merge in", &error);
        let is_merged = repository.is_ancestor(head, base).await.map_err(failed)?
            // A merge commit after a squashed or rebased merge would change nothing.
            || repository.contains_changes(head, base).await.map_err(failed)?;
        if is_merged {
            return Ok((MergeKind::AlreadyMerged, base.clone(), None));
        }
        let worktree = repository.worktree_with(&plan.base_branch).await;
        let worktree = worktree.map_err(failed)?;
        let is_behind = repository.is_ancestor(base, head).await.map_err(failed)?;
        let (kind, commit) = if is_behind {
            (MergeKind::FastForward, head.clone())
        } else {
            (MergeKind::MergeCommit, self.merge_commit().await?)
        };
        let moved = repository
            .fast_forward(&plan.base_branch, (base, &commit), worktree.as_deref())
            .await;
        moved.map_err(|error| self.refused(&error, worktree.as_ref()))?;
        Ok((kind, commit, worktree))
    }

    async fn merge_commit(&self) -> Result<CommitId, AppError> {
        let plan = &self.state.plan;
        let message = format!(
            "Merge branch '{}': {}\n\nRalph-Run: {}\n",
            plan.branch, plan.title, plan.run
        );
        let merged = self
            .repository
            .merge(&self.base, &self.head, &message)
            .await;
        match merged.map_err(|error| repository_error(plan, "merge in", &error))? {
            MergeResult::Merged(commit) => Ok(commit),
            MergeResult::Conflicts(files) => {
                let named: Vec<&str> = files
                    .iter()
                    .take(MAX_NAMED_FILES)
                    .map(AsRef::as_ref)
                    .collect();
                let more = files.len().saturating_sub(MAX_NAMED_FILES);
                let more = match more {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                Err(AppError::refused(
                    format!(
                        "`{}` cannot be merged into `{}`",
                        plan.branch, plan.base_branch
                    ),
                    format!("both changed {}{more}", named.join(", ")),
                    format!(
                        "nothing was changed; resolve it with `git merge {}`",
                        plan.branch
                    ),
                ))
            }
        }
    }

    /// Returns the error of a fast-forward that git refused.
    fn refused(&self, error: &GitError, worktree: Option<&PathBuf>) -> AppError {
        let plan = &self.state.plan;
        let fix = match worktree {
            Some(path) => format!(
                "nothing was changed; commit or stash the local changes in `{}`, then try again",
                path.display()
            ),
            None => "nothing was changed; try again".to_owned(),
        };
        AppError::refused(
            format!(
                "`{}` cannot be merged into `{}`",
                plan.branch, plan.base_branch
            ),
            error.to_string(),
            fix,
        )
    }
}

/// Rejects a branch whose commit no clean room has verified, unless the user accepts that.
fn require_verified(
    state: &RunState,
    head: &CommitId,
    consent: MergeConsent,
) -> Result<(), AppError> {
    if consent == MergeConsent::Unverified {
        return Ok(());
    }
    let why = match &state.verified {
        Some((verified, true)) if state.status == RunStatus::Succeeded => {
            if verified == head {
                return Ok(());
            }
            format!(
                "commit {} is verified, but the branch is at {}",
                verified.short(),
                head.short()
            )
        }
        Some(_) | None => format!("the run is `{}`, not `succeeded`", state.status.as_str()),
    };
    let run = &state.plan.run;
    Err(AppError::refused(
        format!("branch `{}` is not verified", state.plan.branch),
        why,
        format!("review it with `ralph diff {run}`, then use `ralph merge {run} --unverified`"),
    ))
}

fn no_branch(state: &RunState, branch: &str) -> AppError {
    let plan = &state.plan;
    let (why, fix) = if state.discarded {
        (
            "the run was discarded",
            "start the task again with `ralph run`".to_owned(),
        )
    } else if state.pushed.is_none() && branch == plan.branch {
        (
            "the run has delivered no commit",
            format!("see `ralph show {}`", plan.run),
        )
    } else {
        (
            "it was removed or renamed",
            format!("`ralph export {} DIR` writes the run's commits", plan.run),
        )
    };
    AppError::refused(
        format!("there is no branch `{branch}` in `{}`", plan.repo),
        why,
        fix,
    )
}
