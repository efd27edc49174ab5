//! Performs the actions of a reply, one after the other. Each intent is on disk before its effect,
//! so that after a crash the state of the sandbox shows whether the effect took place.

use std::io::ErrorKind;
use std::time::Duration;

use ralph_core::action::{Action, Response};
use ralph_core::event::{ActionResult, IterationEvent, IterationOutcome};
use ralph_core::id::Digest;
use ralph_core::path::{SandboxPath, WorkspacePath};
use ralph_core::ports::{Exec, SandboxError};
use ralph_core::task::OnActionError;
use serde::Serialize;

use super::cleared::ClearedAction;
use super::commit::{commit_action, commit_before_restart};
use super::file_step::{execute_file_step, plan_file_step};
use crate::capture::{Capture, Captured};
use crate::check_results::update_checks_after_command;
use crate::contract::PinnedTask;
use crate::controls::PendingRequest;
use crate::error::RunError;
use crate::journal::millis;
use crate::live_output::LiveSource;
use crate::pause::handle_pending_input;
use crate::recorder::Recorder;
use crate::run::Run;

/// The reason for skipping actions when the user requests a fresh iteration. Compared with recorded
/// results, so journals of older versions depend on the text.
const ROTATION_REQUESTED: &str = "a person wants a fresh iteration";
/// The reason for skipping actions when a budget is used up.
const OUT_OF_BUDGET: &str = "a budget is used up";

/// The longest timeout of a command in runs whose plan has none, whatever the model asks for.
const MAX_TIMEOUT: Duration = Duration::from_hours(2);

/// An action that was started before a restart, with the digest that its file will have.
type PendingAction = (usize, Option<Digest>);

/// The outcome of the actions of an iteration.
#[derive(Debug, Clone)]
pub(crate) struct Performed {
    pub(crate) outcome: IterationOutcome,
    /// The model's reason for its control action.
    pub(crate) reason: String,
    pub(crate) total: usize,
    pub(crate) succeeded: usize,
    pub(crate) repaired: bool,
}

impl Performed {
    pub(crate) fn none(outcome: IterationOutcome) -> Self {
        Self {
            outcome,
            reason: String::new(),
            total: 0,
            succeeded: 0,
            repaired: false,
        }
    }
}

impl Performed {
    /// Restores the outcome from the recorded reason for skipping actions, and returns the reason.
    fn restore_skip_reason(&mut self, why: &str) -> &'static str {
        if why == ROTATION_REQUESTED {
            self.outcome = IterationOutcome::Rotated;
            return ROTATION_REQUESTED;
        }
        self.outcome = IterationOutcome::OutOfBudget;
        OUT_OF_BUDGET
    }
}

/// One line of `actions.jsonl`.
#[derive(Serialize)]
struct ActionLogEntry<'a> {
    index: usize,
    #[serde(rename = "type")]
    kind: &'a str,
    label: String,
    #[serde(flatten)]
    result: &'a ActionResult,
    duration_ms: u64,
    #[serde(skip_serializing_if = "str::is_empty")]
    stdout: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    stderr: &'a str,
}

/// The effect of an action before it is recorded.
pub(super) struct ActionEffect {
    result: ActionResult,
    output: Captured,
}

impl ActionEffect {
    pub(super) fn from_result(result: ActionResult) -> Self {
        Self {
            result,
            output: Captured::default(),
        }
    }

    pub(super) fn done(detail: impl Into<String>) -> Self {
        Self::from_result(ActionResult::Done {
            detail: detail.into(),
        })
    }

    pub(super) fn failed(why: impl Into<String>) -> Self {
        Self::from_result(ActionResult::Failed { why: why.into() })
    }

    pub(super) fn refused(why: impl Into<String>) -> Self {
        Self::from_result(ActionResult::Refused { why: why.into() })
    }
}

/// Performs the actions up to the first control action, or the first failure unless the contract
/// continues after failures. The rest is recorded as skipped.
pub(crate) async fn perform(run: &mut Run, response: &Response) -> Result<Performed, RunError> {
    let mut performed = Performed {
        total: response.actions.len(),
        repaired: response.repaired,
        ..Performed::none(IterationOutcome::Completed)
    };
    run.recorder.drop_unrecorded_actions()?;
    let mut skip: Option<&str> = None;
    for (index, action) in response.actions.iter().enumerate() {
        if skip.is_none() {
            skip = early_stop_reason(run, &mut performed).await?;
        }
        let result = match (recorded_result(&run.recorder, index), skip) {
            (Some(result), _) => result,
            (None, Some(why)) => {
                let effect = ActionEffect::from_result(ActionResult::Skipped {
                    why: why.to_owned(),
                });
                record_outcome(&mut run.recorder, index, action, effect, Duration::ZERO)?
            }
            (None, None) => perform_action(run, index, action).await?,
        };
        performed.succeeded += usize::from(result.is_success());
        if skip.is_none() {
            skip = skip_reason_after(&run.pinned, index, action, &result, &mut performed);
        }
    }
    Ok(performed)
}

/// Returns why the iteration ends before the next action: a user request or a used-up budget.
async fn early_stop_reason(
    run: &mut Run,
    performed: &mut Performed,
) -> Result<Option<&'static str>, RunError> {
    handle_pending_input(run).await?;
    if run.controls.pending == Some(PendingRequest::Rotate) {
        run.controls.pending = None;
        performed.outcome = IterationOutcome::Rotated;
        return Ok(Some(ROTATION_REQUESTED));
    }
    if run.recorder.exhausted_budget().is_some() {
        performed.outcome = IterationOutcome::OutOfBudget;
        return Ok(Some(OUT_OF_BUDGET));
    }
    Ok(None)
}

/// Returns why the actions after this one are skipped, if they are.
fn skip_reason_after(
    pinned: &PinnedTask,
    index: usize,
    action: &Action,
    result: &ActionResult,
    performed: &mut Performed,
) -> Option<&'static str> {
    if let ActionResult::Skipped { why } = result {
        // Skipped before a restart: the following actions are skipped for the same reason.
        return Some(performed.restore_skip_reason(why));
    }
    let control = match action {
        Action::Rotate { reason } => Some((IterationOutcome::Rotated, reason)),
        Action::Pause { reason } => Some((IterationOutcome::Paused, reason)),
        Action::StopSuccess { reason } => Some((IterationOutcome::StopRequested, reason)),
        Action::StopFailure { reason } => Some((IterationOutcome::GaveUp, reason)),
        Action::Run { .. }
        | Action::Patch { .. }
        | Action::Write { .. }
        | Action::Commit { .. } => None,
    };
    if let Some((outcome, reason)) = control {
        performed.outcome = outcome;
        performed.reason.clone_from(reason);
        return Some("an earlier action ended the iteration");
    }
    let continues = pinned.contract().on_action_error == OnActionError::Continue;
    if result.is_success() || continues {
        return None;
    }
    performed.outcome = IterationOutcome::ActionFailed { index };
    Some("an earlier action failed")
}

fn recorded_result(recorder: &Recorder, index: usize) -> Option<ActionResult> {
    recorder
        .state()
        .open
        .as_ref()
        .and_then(|open| open.results.get(&index).cloned())
}

/// Performs one action: intent, effect, outcome.
async fn perform_action(
    run: &mut Run,
    index: usize,
    action: &Action,
) -> Result<ActionResult, RunError> {
    let pending = run
        .recorder
        .state()
        .open
        .as_ref()
        .and_then(|open| open.pending.clone())
        .filter(|(at, _)| *at == index);
    if pending.is_some() && matches!(action, Action::Run { .. }) {
        // Its effect before the crash is unknown; report that before it runs again.
        run.recorder.log_error(&format!(
            "`{}` was interrupted by a restart and runs again",
            action.label(&run.recorder.redactor)
        ))?;
        record_outcome(
            &mut run.recorder,
            index,
            action,
            ActionEffect::from_result(ActionResult::Interrupted),
            Duration::ZERO,
        )?;
    }
    let started = run.recorder.clock.monotonic();
    let effect = match ClearedAction::check(action, &run.recorder.redactor) {
        Ok(cleared) => execute_action(run, index, cleared, pending).await?,
        Err(why) => {
            record_intent(&mut run.recorder, index, action, None)?;
            ActionEffect::refused(why)
        }
    };
    let took = run.recorder.clock.monotonic().saturating_sub(started);
    if action.changes_files() {
        // The recorded effect must survive a power cut.
        run.bench.sandbox.sync().await?;
    }
    record_outcome(&mut run.recorder, index, action, effect, took)
}

/// Records the intent, then performs it. `pending` is the intent from before a restart.
async fn execute_action(
    run: &mut Run,
    index: usize,
    cleared: ClearedAction<'_>,
    pending: Option<PendingAction>,
) -> Result<ActionEffect, RunError> {
    match cleared.action() {
        action @ Action::Run {
            command,
            cwd,
            timeout,
        } => {
            record_intent(&mut run.recorder, index, action, None)?;
            run_command(run, command, cwd.as_ref(), *timeout).await
        }
        action @ (Action::Patch { path, .. } | Action::Write { path, .. }) => {
            let step = plan_file_step(
                &run.recorder,
                &run.bench,
                &run.pinned,
                action,
                path,
                pending.and_then(|(_, after)| after),
            )
            .await?;
            record_intent(&mut run.recorder, index, action, step.digest())?;
            execute_file_step(
                &mut run.recorder,
                &run.bench,
                &mut run.controls,
                &mut run.scratch,
                step,
            )
            .await
        }
        action @ Action::Commit { message, paths } => {
            let before = match pending {
                Some(_) => commit_before_restart(&run.recorder, &run.bench, index).await?,
                None => None,
            };
            record_intent(&mut run.recorder, index, action, None)?;
            if let Some(effect) = before {
                return Ok(effect);
            }
            commit_action(run, index, message, paths).await
        }
        action @ (Action::Rotate { .. }
        | Action::Pause { .. }
        | Action::StopSuccess { .. }
        | Action::StopFailure { .. }) => {
            record_intent(&mut run.recorder, index, action, None)?;
            let request = matches!(action, Action::StopSuccess { .. });
            Ok(ActionEffect::done(if request { "requested" } else { "" }))
        }
    }
}

fn record_intent(
    recorder: &mut Recorder,
    index: usize,
    action: &Action,
    after: Option<Digest>,
) -> Result<(), RunError> {
    let iteration = recorder.state().iteration;
    recorder.append(IterationEvent::ActionStarted {
        iteration,
        index,
        action: action.kind().to_owned(),
        label: action.label(&recorder.redactor),
        after,
    })?;
    Ok(())
}

async fn run_command(
    run: &mut Run,
    command: &str,
    cwd: Option<&WorkspacePath>,
    timeout: Duration,
) -> Result<ActionEffect, RunError> {
    let dir = cwd.map_or_else(SandboxPath::repo, SandboxPath::in_repo);
    let timeout = timeout.min(run.recorder.command_timeout(MAX_TIMEOUT));
    let exec = Exec::shell(command, timeout).in_dir(dir);
    let live = run.recorder.live_output(LiveSource::Command(command));
    let mut capture = Capture::new(&run.recorder.redactor).with_live(live);
    let outcome = match run
        .bench
        .exec(&mut run.recorder, &mut run.controls, exec, &mut capture)
        .await
    {
        Ok(outcome) => outcome,
        Err(RunError::Sandbox(error)) if is_about_directory(&error) => {
            return Ok(ActionEffect::failed(format!(
                "the directory cannot be used: {error}"
            )));
        }
        Err(RunError::Sandbox(error @ SandboxError::Interrupted { .. })) => {
            // Its effect is unknown; the sandbox works again, and the next iteration sees the
            // result.
            run.recorder
                .log_error(&format!("`{command}` was {error}"))?;
            return Ok(ActionEffect::failed(error.to_string()));
        }
        Err(error) => return Err(error),
    };
    let output = capture.finish();
    run.recorder
        .append_test_output(command, &output, outcome.ended)?;
    if outcome.process_limit {
        let problem = "process limit reached: some of its processes could not start";
        run.recorder.log_error(&format!("`{command}`: {problem}"))?;
    }
    update_checks_after_command(
        &run.pinned,
        &mut run.scratch,
        command,
        cwd,
        &outcome,
        &output,
    );
    Ok(ActionEffect {
        result: ActionResult::Ran {
            ended: outcome.ended,
            stdout_bytes: outcome.stdout_bytes,
            stderr_bytes: outcome.stderr_bytes,
            failure: output.failure_signature(command, outcome.ended),
            problems: output.problems(outcome.ended),
        },
        output,
    })
}

/// Records an outcome in `actions.jsonl`, in the logs and in the journal.
fn record_outcome(
    recorder: &mut Recorder,
    index: usize,
    action: &Action,
    effect: ActionEffect,
    took: Duration,
) -> Result<ActionResult, RunError> {
    let ActionEffect { result, output } = effect;
    let duration_ms = millis(took);
    let label = action.label(&recorder.redactor);
    if !matches!(result, ActionResult::Interrupted) {
        let line = ActionLogEntry {
            index,
            kind: action.kind(),
            label: label.clone(),
            result: &result,
            duration_ms,
            stdout: &output.stdout,
            stderr: &output.stderr,
        };
        recorder.append_json_line("actions.jsonl", &line)?;
    }
    let description = describe_result(&result);
    let number = index + 1;
    recorder.log_activity(&format!(
        "action {number} {} `{label}`: {description} ({duration_ms} ms)",
        action.kind()
    ))?;
    if !result.is_success()
        && !matches!(
            result,
            ActionResult::Skipped { .. } | ActionResult::Interrupted
        )
    {
        let tail = output.tail(20);
        let tail = if tail.is_empty() {
            String::new()
        } else {
            format!("; output ends:\n{tail}")
        };
        recorder.log_error(&format!(
            "action {number} {} `{label}`: {description}{tail}",
            action.kind()
        ))?;
    }
    recorder.append(IterationEvent::ActionFinished {
        iteration: recorder.state().iteration,
        index,
        action: action.kind().to_owned(),
        label,
        result: result.clone(),
        duration_ms,
        tail: if result.is_success() {
            String::new()
        } else {
            output.tail(5)
        },
    })?;
    Ok(result)
}

/// Returns whether a command did not start because of its working directory.
fn is_about_directory(error: &SandboxError) -> bool {
    match error {
        SandboxError::Escapes(_) | SandboxError::NotFound(_) | SandboxError::NotRegular(_) => true,
        SandboxError::Io { source, .. } => matches!(
            source.kind(),
            ErrorKind::NotADirectory | ErrorKind::PermissionDenied
        ),
        SandboxError::Gone(_)
        | SandboxError::TooLarge { .. }
        | SandboxError::Spawn { .. }
        | SandboxError::Interrupted { .. }
        | SandboxError::Provider(_) => false,
    }
}

fn describe_result(result: &ActionResult) -> String {
    match result {
        ActionResult::Done { detail } if detail.is_empty() => "done".into(),
        ActionResult::Done { detail } => format!("done, {detail}"),
        ActionResult::Ran { ended, .. } => ended.to_string(),
        ActionResult::Failed { why } => format!("failed: {why}"),
        ActionResult::Refused { why } => format!("refused: {why}"),
        ActionResult::Skipped { why } => format!("skipped: {why}"),
        ActionResult::Interrupted => "interrupted by a restart".into(),
    }
}

#[cfg(test)]
mod tests;
