//! Records the result of a run in its issue.

use std::sync::Arc;

use ralph_core::run::{PauseReason, RunStatus};
use ralph_core::spec::{IssueStatus, Spec};
use ralph_core::state::RunState;
use ralph_engine::store::RunDir;

use super::comments::{comment_status, quoted};
use super::dependencies::{DependencyGate, KnownIssues};
use super::front_end::{IssueEnd, IssueEvent, IssueFrontEnd, UnmetDependencies};
use super::records::IssueRecord;
use super::repository::IssueRepository;
use super::write_back::{WrittenIssue, write_back};
use crate::error::AppError;
use crate::results::remove_ended_sandboxes;

/// Writes the final specification, the labels and the status comment. Repeating it changes nothing.
pub(super) async fn settle(
    repository: &Arc<IssueRepository>,
    dir: &RunDir,
    record: &mut IssueRecord,
    front_end: &dyn IssueFrontEnd,
) -> Result<IssueEnd, AppError> {
    let end = record_result(repository, dir, record).await?;
    if let IssueEnd::Done { .. } = &end {
        remove_sandboxes(repository, dir).await;
        unblock_ready(repository, &mut KnownIssues::default(), front_end).await?;
    }
    Ok(end)
}

/// Writes the final specification, the labels and the status comment.
pub(super) async fn record_result(
    repository: &IssueRepository,
    dir: &RunDir,
    record: &mut IssueRecord,
) -> Result<IssueEnd, AppError> {
    let state = dir.state()?;
    let Some(written) = write_back(repository, dir, record).await? else {
        let why = format!("issue #{} does not exist any more", record.issue);
        return Ok(IssueEnd::NeedsAttention { reason: why });
    };
    let end = decide(&state, &written);
    let to = match &end {
        IssueEnd::Done { .. } => IssueStatus::Done,
        IssueEnd::Interrupted => IssueStatus::Ready,
        IssueEnd::Failed { .. } | IssueEnd::NeedsAttention { .. } => IssueStatus::NeedsAttention,
        IssueEnd::AlreadyDone | IssueEnd::Blocked(_) | IssueEnd::Refused(_) => return Ok(end),
    };
    comment_status(repository, record.issue, &status_text(&state, &end)).await?;
    repository.set_status(record.issue, to).await?;
    Ok(end)
}

/// Removes the sandboxes of a finished run. A failure has no effect on the issue: they are pruned later.
async fn remove_sandboxes(repository: &IssueRepository, dir: &RunDir) {
    match remove_ended_sandboxes(dir, &repository.app).await {
        Ok(removed) => tracing::info!(count = removed.len(), "removed the sandboxes of the issue"),
        Err(error) => tracing::warn!(%error, "the sandboxes of the issue are not removed"),
    }
}

fn decide(state: &RunState, written: &WrittenIssue) -> IssueEnd {
    let reason = || {
        state
            .status
            .reason()
            .unwrap_or_else(|| state.status.as_str().to_owned())
    };
    match &state.status {
        RunStatus::Succeeded if !written.new_steps.is_empty() => IssueEnd::NeedsAttention {
            reason: format!(
                "all steps of the run are done, and step {} was added since it started; give the issue the ready \
                 label for another run",
                written.new_steps.join(", ")
            ),
        },
        RunStatus::Succeeded if !written.reopened.is_empty() => IssueEnd::NeedsAttention {
            reason: format!(
                "all steps of the run are done, and the mark of step {} was removed since; edit the step and give the \
                 issue the ready label for another run",
                written.reopened.join(", ")
            ),
        },
        RunStatus::Succeeded => IssueEnd::Done {
            pull: state.pull.as_ref().map(|pull| pull.url.clone()),
        },
        RunStatus::Failed(_) | RunStatus::Stopped => IssueEnd::Failed { reason: reason() },
        // The process ended before the run did.
        RunStatus::Paused(PauseReason::Interrupted)
        | RunStatus::Created
        | RunStatus::Preparing
        | RunStatus::Running
        | RunStatus::WaitingQuota(_)
        | RunStatus::WaitingProvider(_)
        | RunStatus::WaitingCi(_)
        | RunStatus::WaitingHost(_)
        | RunStatus::Verifying => IssueEnd::Interrupted,
        RunStatus::Paused(_) | RunStatus::SandboxLost => {
            IssueEnd::NeedsAttention { reason: reason() }
        }
    }
}

fn status_text(state: &RunState, end: &IssueEnd) -> String {
    let (run, branch) = (&state.plan.run, &state.plan.branch);
    let number = state.plan.issue_number().unwrap_or_default();
    let pull = state.pull.as_ref();
    let pull = pull.map_or_else(String::new, |pull| {
        format!(" The pull request is {}.", pull.url)
    });
    match end {
        IssueEnd::Done { .. } => format!(
            "**Done**: all steps are done, and all checks pass on a clean checkout of branch `{branch}`.{pull} Run `{run}`."
        ),
        IssueEnd::Failed { reason } => format!(
            "**Failed**: run `{run}` on branch `{branch}` ended without success.{pull}\n\n{}\n\nTo try again, give the \
             issue the ready label.",
            quoted(reason, number)
        ),
        IssueEnd::NeedsAttention { reason } => format!(
            "**Needs attention**: run `{run}` on branch `{branch}` waits.{pull}\n\n{}\n\nOn the machine of the run, \
             `ralph show {run}` shows the details and `ralph answer {run} TEXT` answers a question; \
             `ralph issue {}` continues. An edit of the issue and the ready label start a new run.",
            quoted(reason, number),
            number
        ),
        IssueEnd::Interrupted => {
            format!(
                "**Interrupted**: run `{run}` on branch `{branch}` stopped, and continues when the issue is claimed again."
            )
        }
        IssueEnd::AlreadyDone | IssueEnd::Blocked(_) | IssueEnd::Refused(_) => String::new(),
    }
}

/// Makes blocked issues ready whose dependencies are done, and returns those that still wait. An issue in a cycle
/// needs attention.
pub(super) async fn unblock_ready(
    repository: &IssueRepository,
    known: &mut KnownIssues,
    front_end: &dyn IssueFrontEnd,
) -> Result<Vec<(u64, UnmetDependencies)>, AppError> {
    let mut waiting = Vec::new();
    for issue in repository.issues_with(IssueStatus::Blocked).await? {
        if !repository.is_by_author(&issue) {
            continue;
        }
        let depends = Spec::dependencies_in(&issue.body);
        match known.check(issue.number, &depends, repository).await? {
            DependencyGate::Open => {
                // Another process may have unblocked it since, and may already work on it.
                let is_won = repository
                    .transition(issue.number, IssueStatus::Blocked, IssueStatus::Ready)
                    .await?;
                if is_won {
                    front_end.report(&IssueEvent::Unblocked {
                        number: issue.number,
                    });
                }
            }
            DependencyGate::Waiting(unmet) => waiting.push((issue.number, unmet)),
            DependencyGate::Cycle(cycle) => {
                let (from, to) = (IssueStatus::Blocked, IssueStatus::NeedsAttention);
                if repository.transition(issue.number, from, to).await? {
                    report_cycle(repository, issue.number, &cycle).await?;
                }
            }
        }
    }
    Ok(waiting)
}

/// Comments that an issue waits for itself.
pub(super) async fn report_cycle(
    repository: &IssueRepository,
    number: u64,
    cycle: &[u64],
) -> Result<String, AppError> {
    let path: Vec<String> = cycle.iter().map(|number| format!("#{number}")).collect();
    let reason = format!("the issue waits for itself: {}", path.join(" → "));
    let text = format!(
        "**ralph cannot start**: {reason}. Remove one of these from `depends`, then give the issue the ready label \
         again."
    );
    comment_status(repository, number, &text).await?;
    Ok(reason)
}
