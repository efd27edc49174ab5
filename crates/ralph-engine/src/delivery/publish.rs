//! Delivery: pushes the branch, updates the pull request, grants or refuses success.

use std::sync::Arc;

use ralph_core::event::{DeliveryEvent, IterationOutcome, RunEvent, VerificationEvent};
use ralph_core::id::CommitId;
use ralph_core::plan::Delivery;
use ralph_core::ports::{CommitState, PullState, Scm};
use ralph_core::publish::ci::CiDecision;
use ralph_core::run::{PauseReason, RunStatus};
use ralph_core::state::{CiResult, RunState};
use ralph_core::surface::{self, Surface};
use ralph_core::verdict::{self, CheckResult, CompletionState};

use super::ci::{CiVerdict, await_checks, unread_input};
use super::commit_status::report_verification;
use super::host_request::{HostPatience, host_request};
use super::pull_request::{closed_issues, pull_draft, update_pull_request};
use super::reviews::take_reviews;
use super::state_ref::save_state;
use super::surroundings::{LookOccasion, inspect_surroundings};
use super::test_changes::{add_test_changes, refused_test_changes, unapproved_test_changes};
use super::verify::{CleanRoomReport, verify_commit};
use crate::contract::PinnedTask;
use crate::contract_change::set_ticks;
use crate::error::RunError;
use crate::recorder::Recorder;
use crate::rules;
use crate::run::Run;
use crate::services::Services;
use crate::steps::IterationScratch;
use crate::workbench::Workbench;

/// The result of a delivery for the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DeliveryOutcome {
    /// The run continues.
    Unfinished,
    /// The run has succeeded.
    Success,
    /// The user must decide or act before the run continues.
    NeedsUser(PauseReason),
}

/// Publishes the branch if due and returns whether the run has succeeded.
pub(crate) async fn deliver(
    run: &mut Run,
    outcome: &IterationOutcome,
) -> Result<DeliveryOutcome, RunError> {
    let reviews = take_reviews(run).await?;
    let delivered = if reviews.is_empty() {
        deliver_if_due(run, outcome).await?
    } else {
        refuse_success(&mut run.recorder, reviews)?;
        DeliveryOutcome::Unfinished
    };
    if delivered != DeliveryOutcome::Unfinished {
        return Ok(delivered);
    }
    inspect_surroundings(run, LookOccasion::Regular).await?;
    let pause = run.surroundings.take_pause();
    Ok(pause.map_or(DeliveryOutcome::Unfinished, DeliveryOutcome::NeedsUser))
}

async fn deliver_if_due(
    run: &mut Run,
    outcome: &IterationOutcome,
) -> Result<DeliveryOutcome, RunError> {
    let asked = *outcome == IterationOutcome::StopRequested;
    let standing = completion_state(&run.recorder, &run.bench, &run.pinned);
    match verdict::may_finish(&standing) {
        Ok(()) if asked || !is_known_red(&run.recorder, &run.scratch) => {
            let refused = refused_test_changes(&run.recorder, &run.bench, &run.pinned).await?;
            if refused.is_empty() {
                return try_success(run).await;
            }
            refuse_success(&mut run.recorder, refused)?;
        }
        // All boxes are ticked, so report what still blocks success; otherwise the model keeps
        // iterating without knowing.
        Err(reasons) if asked || standing.open_boxes.is_empty() => {
            refuse_success(&mut run.recorder, reasons)?;
        }
        Ok(()) | Err(_) => {}
    }
    let first = run.recorder.state().pushed.is_none();
    let unpushed = run.recorder.state().pushed.as_ref() != Some(&run.recorder.state().head);
    let due = standing.commits > 0 && unpushed && (first || run.scratch.milestone_reached);
    if due {
        publish_draft(run).await?;
    }
    Ok(DeliveryOutcome::Unfinished)
}

/// Tries to end a run that waited only for the user: for the approval of changed tests, for the checks
/// of the source host, or for an overlap.
pub(crate) async fn finish_approved(run: &mut Run) -> Result<Option<RunStatus>, RunError> {
    let state = run.recorder.state();
    let is_green = state.verified.as_ref() == Some(&(state.head.clone(), true));
    let waits = (state.approved_tests.is_some() || state.host.awaits_user)
        && state.open.is_none()
        && is_green;
    if !waits
        || unread_input(run).is_some()
        || verdict::may_finish(&completion_state(&run.recorder, &run.bench, &run.pinned)).is_err()
    {
        return Ok(None);
    }
    Ok(match try_success(run).await? {
        DeliveryOutcome::Success => Some(RunStatus::Succeeded),
        DeliveryOutcome::NeedsUser(reason) => Some(RunStatus::Paused(reason)),
        DeliveryOutcome::Unfinished => None,
    })
}

/// Publishes the remaining commits at the end of a run: an unfinished branch is delivered, too.
pub(crate) async fn deliver_remaining(run: &mut Run) -> Result<(), RunError> {
    let state = run.recorder.state();
    let unpushed = state.pushed.as_ref() != Some(&state.head);
    if state.head != state.plan.base && unpushed {
        publish_draft(run).await?;
    }
    Ok(())
}

async fn publish_draft(run: &mut Run) -> Result<(), RunError> {
    if let Err(reasons) = publish(run, PullState::Draft, &[]).await? {
        run.recorder
            .log_error(&format!("not pushed: {}", reasons.join("; ")))?;
    }
    Ok(())
}

fn completion_state(
    recorder: &Recorder,
    bench: &Workbench,
    pinned: &PinnedTask,
) -> CompletionState {
    let state = recorder.state();
    let open = pinned
        .task()
        .checkboxes
        .iter()
        .filter(|checkbox| !state.ticked.contains(&checkbox.id));
    CompletionState {
        open_boxes: open.map(|checkbox| checkbox.id.clone()).collect(),
        dirty_files: bench.view.tree.dirty_paths(),
        commits: u64::from(state.head != state.plan.base),
    }
}

/// Returns whether this commit was already red in a clean room or at the source host. False in a
/// resumed iteration: the crash may have come before the red result was handled.
fn is_known_red(recorder: &Recorder, scratch: &IterationScratch) -> bool {
    let state = recorder.state();
    let is_red = |(head, green): &(CommitId, bool)| *head == state.head && !green;
    let is_failed = |ci: &CiResult| ci.commit == state.head && ci.decision == CiDecision::Retry;
    !scratch.resumed
        && (state.verified.as_ref().is_some_and(is_red)
            || state.host.ci.as_ref().is_some_and(is_failed))
}

async fn try_success(run: &mut Run) -> Result<DeliveryOutcome, RunError> {
    if let Err(reasons) = publish(run, PullState::Draft, &[]).await? {
        refuse_success(&mut run.recorder, reasons)?;
        return Ok(DeliveryOutcome::Unfinished);
    }
    run.recorder.set_status(RunStatus::Verifying)?;
    let head = run.recorder.state().head.clone();
    let checks = if let Some(checks) = checks_before_wait(run.recorder.state()) {
        checks
    } else {
        let report = verify_commit(run, &head).await?;
        if !report.is_green() {
            report_verification(run, &head, CommitState::Failure).await?;
            reopen_red_boxes(run, &report)?;
            return Ok(DeliveryOutcome::Unfinished);
        }
        report.checks
    };
    push_if_missing(run).await?;
    let approval = unapproved_test_changes(&run.recorder, &run.bench, &run.pinned).await?;
    if let Some(reason) = approval.or_else(|| run.surroundings.take_pause()) {
        run.recorder.set_status(RunStatus::Running)?;
        return Ok(DeliveryOutcome::NeedsUser(reason));
    }
    report_verification(run, &head, CommitState::Success).await?;
    finish_at_host(run, &head, &checks).await
}

/// Returns the results of the clean room if the run waited for the checks of this commit before a
/// restart, so that it continues with that wait.
fn checks_before_wait(state: &RunState) -> Option<Vec<CheckResult>> {
    let green = state.green_head()?;
    let has_waited = state.host.waited_for.as_ref() == Some(&state.head);
    has_waited.then(|| green.checks.clone())
}

/// Waits for the checks of the source host, and marks the pull request as ready.
async fn finish_at_host(
    run: &mut Run,
    head: &CommitId,
    checks: &[CheckResult],
) -> Result<DeliveryOutcome, RunError> {
    let mut refused = Vec::new();
    let mut pause = None;
    match await_checks(run, head).await? {
        CiVerdict::Success => refused.extend(unread_input(run)),
        CiVerdict::Refused(reasons) => refused = reasons,
        CiVerdict::Pause(reason) => pause = Some(reason),
    }
    if refused.is_empty() && pause.is_none() {
        let state = if run.pinned.contract().pr.ready_on_success {
            PullState::Open
        } else {
            PullState::Draft
        };
        match publish(run, state, checks).await? {
            Ok(()) => {
                run.recorder
                    .log_activity(&format!("verified: commit {}", head.short()))?;
                return Ok(DeliveryOutcome::Success);
            }
            Err(reasons) => refused = reasons,
        }
    }
    if !refused.is_empty() {
        refuse_success(&mut run.recorder, refused)?;
    }
    run.recorder.set_status(RunStatus::Running)?;
    Ok(pause.map_or(DeliveryOutcome::Unfinished, DeliveryOutcome::NeedsUser))
}

/// Unticks the boxes whose checks are red in the clean room, and continues the run.
fn reopen_red_boxes(run: &mut Run, report: &CleanRoomReport) -> Result<(), RunError> {
    let red: Vec<&str> = report.red_boxes.iter().map(String::as_str).collect();
    run.recorder.log_activity(&format!(
        "red in the clean room, boxes reopened: {}",
        red.join(", ")
    ))?;
    let mut ticked = run.recorder.state().ticked.clone();
    ticked.retain(|id| !report.red_boxes.contains(id));
    set_ticks(&mut run.recorder, &mut run.bench, &mut run.pinned, &ticked)?;
    let reasons = report
        .reasons
        .iter()
        .map(|why| format!("in the clean room: {why}"))
        .collect();
    refuse_success(&mut run.recorder, reasons)?;
    run.recorder.set_status(RunStatus::Running)
}

fn refuse_success(recorder: &mut Recorder, reasons: Vec<String>) -> Result<(), RunError> {
    let line = format!("success is refused: {}", reasons.join("; "));
    recorder.log_activity(&line)?;
    recorder.log_error(&line)?;
    let iteration = recorder.state().iteration;
    recorder.append(VerificationEvent::SuccessRefused { iteration, reasons })?;
    Ok(())
}

/// Pushes the branch and updates the pull request; the inner error lists the broken rules.
async fn publish(
    run: &mut Run,
    state: PullState,
    evidence: &[CheckResult],
) -> Result<Result<(), Vec<String>>, RunError> {
    let surface = changed_surface(&run.recorder, &run.bench, &run.pinned).await?;
    let broken = broken_rules(&run.recorder, &run.bench, &run.pinned, &surface).await?;
    if !broken.is_empty() {
        return Ok(Err(broken));
    }
    push(run).await?;
    if !evidence.is_empty() {
        report_configuration_changes(&mut run.recorder, &surface)?;
    }
    if run.recorder.state().plan.delivery == Delivery::PullRequest {
        inspect_surroundings(run, LookOccasion::Publish).await?;
        let closes = closed_issues(run).await?;
        let draft = pull_draft(run, state, evidence, (&surface, &closes));
        update_pull_request(run, &draft).await?;
    }
    Ok(Ok(()))
}

pub(super) async fn changed_surface(
    recorder: &Recorder,
    bench: &Workbench,
    pinned: &PinnedTask,
) -> Result<Surface, RunError> {
    let state = recorder.state();
    let changed = bench
        .repo
        .changed_paths(&state.plan.base, &state.head)
        .await?;
    let mut commands: Vec<String> = pinned
        .task()
        .all_verify_commands()
        .iter()
        .map(ToString::to_string)
        .collect();
    commands.extend(pinned.contract().test_command.clone());
    let mut surface = surface::inspect_changes(&changed, &commands);
    add_test_changes(recorder, bench, &changed, &mut surface).await?;
    let strange = bench.repo.strange_entries(&state.plan.base, &state.head);
    surface.executes_for_developers.extend(strange.await?);
    Ok(surface)
}

/// Reports that the branch changes files that later runs would read.
fn report_configuration_changes(
    recorder: &mut Recorder,
    surface: &Surface,
) -> Result<(), RunError> {
    let files = surface.approvals();
    if !files.is_empty() {
        let message = format!("changed — approve to rebuild: {}", files.join(", "));
        recorder.append(RunEvent::Notice { message })?;
    }
    Ok(())
}

/// Returns the rules that the branch breaks: secrets, workflow changes without permission.
async fn broken_rules(
    recorder: &Recorder,
    bench: &Workbench,
    pinned: &PinnedTask,
    surface: &Surface,
) -> Result<Vec<String>, RunError> {
    let mut broken = Vec::new();
    if !pinned.contract().allow_workflow_changes {
        let named = surface.workflows.iter().map(|finding| {
            format!(
                "`{}` is a workflow file; the task does not allow changes to it, revert the change",
                finding.path
            )
        });
        broken.extend(named);
    }
    let (base, head) = (&recorder.state().plan.base, &recorder.state().head);
    let history = bench.repo.history(base, head, rules::MAX_SEARCHED).await?;
    broken.extend(rules::refuse_commits(
        &recorder.redactor,
        history.as_ref(),
        base,
        pinned.own_files(),
    ));
    Ok(broken)
}

/// Pushes the branch again if it is missing at the source host, or has another head.
pub(super) async fn push_if_missing(run: &mut Run) -> Result<(), RunError> {
    let state = run.recorder.state();
    let (branch, head) = (state.plan.branch.clone(), state.head.clone());
    let reference = format!("refs/heads/{branch}");
    let mut patience = HostPatience::default();
    let pushed = loop {
        let remote = run.services.scm.remote();
        match run.bench.repo.remote_ref(remote, &reference).await {
            Ok(pushed) => break pushed,
            Err(error) => patience.wait_out_git(run, error).await?,
        }
    };
    if pushed.as_ref() != Some(&head) {
        push_patiently(run, &head, &reference).await?;
        let (recorder, bench, services) = (&mut run.recorder, &run.bench, &run.services);
        recorder.append(DeliveryEvent::Pushed { branch, head })?;
        save_state(recorder, bench, services, &RunStatus::Running).await?;
    }
    Ok(())
}

/// Pushes a commit, and repeats the push while the source host is not available.
async fn push_patiently(run: &mut Run, commit: &CommitId, reference: &str) -> Result<(), RunError> {
    let mut patience = HostPatience::default();
    loop {
        let (recorder, bench, services) = (&run.recorder, &run.bench, &run.services);
        match push_and_sync(recorder, bench, services, commit, reference).await {
            Ok(()) => return Ok(()),
            Err(RunError::Git(error)) => patience.wait_out_git(run, error).await?,
            Err(error) => return Err(error),
        }
    }
}

/// Pushes a commit and waits until it would survive a power cut at the source host. The push is
/// recorded after this.
pub(super) async fn push_and_sync(
    recorder: &Recorder,
    bench: &Workbench,
    services: &Services,
    commit: &CommitId,
    reference: &str,
) -> Result<(), RunError> {
    let remote = services.scm.remote();
    if recorder.state().epoch > 1 {
        // A power cut during an earlier push may have left a branch whose objects are missing.
        let base = &recorder.state().plan.base;
        bench
            .repo
            .delete_damaged_branch(remote, reference, base)
            .await?;
    }
    bench.repo.push(remote, commit, reference).await?;
    Ok(services.scm.sync().await?)
}

async fn push(run: &mut Run) -> Result<(), RunError> {
    let state = run.recorder.state();
    let (branch, head) = (state.plan.branch.clone(), state.head.clone());
    if state.pushed.as_ref() == Some(&head) {
        return Ok(());
    }
    let (mut patience, name) = (HostPatience::default(), &branch);
    host_request(run, &mut patience, move |scm: Arc<dyn Scm>| async move {
        scm.check_push(name).await
    })
    .await?;
    run.recorder.append(DeliveryEvent::PushStarted {
        branch: branch.clone(),
        head: head.clone(),
    })?;
    let reference = format!("refs/heads/{branch}");
    push_patiently(run, &head, &reference).await?;
    let (recorder, bench, services) = (&mut run.recorder, &run.bench, &run.services);
    recorder.log_activity(&format!("pushed {} to {branch}", head.short()))?;
    recorder.append(DeliveryEvent::Pushed { branch, head })?;
    save_state(recorder, bench, services, &RunStatus::Running).await
}

#[cfg(test)]
mod tests;
