//! Carries out the actions of a reply, one after the other; each intent is on disk before its
//! effect, so that a crash between them is settled by looking at the world.

use std::io::ErrorKind;
use std::time::Duration;

use ralph_core::action::{Action, Response};
use ralph_core::budget;
use ralph_core::event::{ActionResult, IterationEvent, IterationOutcome};
use ralph_core::id::Digest;
use ralph_core::path::{SandboxPath, WorkspacePath};
use ralph_core::ports::{Exec, SandboxError};
use ralph_core::task::OnActionError;
use serde::Serialize;

use super::cleared::ClearedAction;
use crate::capture::{Capture, Captured};
use crate::control::PendingRequest;
use crate::error::RunError;
use crate::journal::millis;
use crate::run::Run;

/// Why actions are skipped when a person wants a fresh iteration.
const ROTATION_REQUESTED: &str = "a person wants a fresh iteration";
/// Why actions are skipped when there is nothing left to spend.
const OUT_OF_BUDGET: &str = "a budget is used up";

/// The longest a command may take, whatever the model asks for.
const MAX_TIMEOUT: Duration = Duration::from_hours(2);

/// An action that was begun before a restart, with the digest its file will have.
type PendingAction = (usize, Option<Digest>);

/// How the actions of an iteration went.
#[derive(Debug, Clone)]
pub(crate) struct Performed {
    pub(crate) outcome: IterationOutcome,
    /// The model's words with its control action.
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
    /// Takes up the reason for which actions were skipped before a restart.
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

/// What an action did, before it is told.
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

impl Run {
    /// Performs the actions up to the first control action or failure; the rest is recorded as skipped.
    pub(crate) async fn perform(&mut self, response: &Response) -> Result<Performed, RunError> {
        let mut performed = Performed {
            total: response.actions.len(),
            repaired: response.repaired,
            ..Performed::none(IterationOutcome::Completed)
        };
        self.drop_unrecorded_actions()?;
        let mut skip: Option<&str> = None;
        for (index, action) in response.actions.iter().enumerate() {
            if skip.is_none() {
                skip = self.early_stop_reason(&mut performed).await?;
            }
            let result = match (self.recorded_result(index), skip) {
                (Some(result), _) => result,
                (None, Some(why)) => {
                    let effect = ActionEffect::from_result(ActionResult::Skipped {
                        why: why.to_owned(),
                    });
                    self.record_outcome(index, action, effect, Duration::ZERO)?
                }
                (None, None) => self.perform_action(index, action).await?,
            };
            performed.succeeded += usize::from(result.is_success());
            if skip.is_none() {
                skip = self.skip_reason_after(index, action, &result, &mut performed);
            }
        }
        Ok(performed)
    }

    /// Looks between two actions: people's wishes and used-up budgets end an iteration early.
    async fn early_stop_reason(
        &mut self,
        performed: &mut Performed,
    ) -> Result<Option<&'static str>, RunError> {
        self.handle_pending_input().await?;
        if self.control.pending == Some(PendingRequest::Rotate) {
            self.control.pending = None;
            performed.outcome = IterationOutcome::Rotated;
            return Ok(Some(ROTATION_REQUESTED));
        }
        let limits = self.pinned.contract().limits();
        if budget::exhausted(&limits, &self.spent()).is_some() {
            performed.outcome = IterationOutcome::OutOfBudget;
            return Ok(Some(OUT_OF_BUDGET));
        }
        Ok(None)
    }

    /// Decides what an action's result means for the ones after it.
    fn skip_reason_after(
        &self,
        index: usize,
        action: &Action,
        result: &ActionResult,
        performed: &mut Performed,
    ) -> Option<&'static str> {
        if let ActionResult::Skipped { why } = result {
            // Skipped before a restart: what follows is skipped for the same reason.
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
        let go_on = self.pinned.contract().on_action_error == OnActionError::Continue;
        if result.is_success() || go_on {
            return None;
        }
        performed.outcome = IterationOutcome::ActionFailed { index };
        Some("an earlier action failed")
    }

    fn recorded_result(&self, index: usize) -> Option<ActionResult> {
        self.state()
            .open
            .as_ref()
            .and_then(|open| open.results.get(&index).cloned())
    }

    /// Performs one action: intent, effect, outcome.
    async fn perform_action(
        &mut self,
        index: usize,
        action: &Action,
    ) -> Result<ActionResult, RunError> {
        let pending = self
            .state()
            .open
            .as_ref()
            .and_then(|open| open.pending.clone())
            .filter(|(at, _)| *at == index);
        if pending.is_some() && matches!(action, Action::Run { .. }) {
            // What it did until the crash is unknown; that is said before it runs again.
            self.log_error(&format!(
                "`{}` was interrupted by a restart and runs again",
                action.label(&self.services.redactor)
            ))?;
            self.record_outcome(
                index,
                action,
                ActionEffect::from_result(ActionResult::Interrupted),
                Duration::ZERO,
            )?;
        }
        let started = self.services.clock.monotonic();
        let effect = match ClearedAction::check(action, &self.services.redactor) {
            Ok(cleared) => self.execute_action(index, cleared, pending).await?,
            Err(why) => {
                self.record_intent(index, action, None)?;
                ActionEffect::refused(why)
            }
        };
        let took = self.services.clock.monotonic().saturating_sub(started);
        if action.changes_files() {
            // What the record says must still be so after a power cut.
            self.sandbox.sync().await?;
        }
        self.record_outcome(index, action, effect, took)
    }

    /// Writes the intent down, then does it. `pending` is what was intended before a restart.
    async fn execute_action(
        &mut self,
        index: usize,
        cleared: ClearedAction<'_>,
        pending: Option<PendingAction>,
    ) -> Result<ActionEffect, RunError> {
        let action = cleared.action();
        match action {
            Action::Run {
                command,
                cwd,
                timeout,
            } => {
                self.record_intent(index, action, None)?;
                self.run_command(command, cwd.as_ref(), *timeout).await
            }
            Action::Patch { path, .. } | Action::Write { path, .. } => {
                let step = self
                    .plan_file_step(action, path, pending.and_then(|(_, after)| after))
                    .await?;
                self.record_intent(index, action, step.digest())?;
                self.execute_file_step(step).await
            }
            Action::Commit { message, paths } => {
                let before = match pending {
                    Some(_) => self.commit_before_restart(index).await?,
                    None => None,
                };
                self.record_intent(index, action, None)?;
                match before {
                    Some(effect) => Ok(effect),
                    None => self.commit_action(index, message, paths).await,
                }
            }
            Action::Rotate { .. }
            | Action::Pause { .. }
            | Action::StopSuccess { .. }
            | Action::StopFailure { .. } => {
                self.record_intent(index, action, None)?;
                let request = matches!(action, Action::StopSuccess { .. });
                Ok(ActionEffect::done(if request { "a request" } else { "" }))
            }
        }
    }

    fn record_intent(
        &mut self,
        index: usize,
        action: &Action,
        after: Option<Digest>,
    ) -> Result<(), RunError> {
        let iteration = self.state().iteration;
        self.journal.append(IterationEvent::ActionStarted {
            iteration,
            index,
            action: action.kind().to_owned(),
            label: action.label(&self.services.redactor),
            after,
        })?;
        Ok(())
    }

    async fn run_command(
        &mut self,
        command: &str,
        cwd: Option<&WorkspacePath>,
        timeout: Duration,
    ) -> Result<ActionEffect, RunError> {
        let dir = cwd.map_or_else(SandboxPath::repo, SandboxPath::in_repo);
        let exec = Exec::shell(command, timeout.min(MAX_TIMEOUT)).in_dir(dir);
        let mut capture = Capture::new(&self.services.redactor);
        let outcome = match self.exec(exec, &mut capture).await {
            Ok(outcome) => outcome,
            Err(RunError::Sandbox(error)) if is_about_directory(&error) => {
                return Ok(ActionEffect::failed(format!(
                    "the directory cannot be used: {error}"
                )));
            }
            Err(RunError::Sandbox(error @ SandboxError::Interrupted { .. })) => {
                // What it did is unknown; the sandbox works again, and the next iteration sees.
                self.log_error(&format!("`{command}` was {error}"))?;
                return Ok(ActionEffect::failed(error.to_string()));
            }
            Err(error) => return Err(error),
        };
        let output = capture.finish();
        self.append_test_output(command, &output, outcome.ended)?;
        if outcome.process_limit {
            let words = "process limit reached: something in it could not be started";
            self.log_error(&format!("`{command}`: {words}"))?;
        }
        self.update_checks_after_command(command, cwd, &outcome, &output);
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

    /// Tells an outcome: in `actions.jsonl`, in the logs, in the journal.
    fn record_outcome(
        &mut self,
        index: usize,
        action: &Action,
        effect: ActionEffect,
        took: Duration,
    ) -> Result<ActionResult, RunError> {
        let ActionEffect { result, output } = effect;
        let duration_ms = millis(took);
        let label = action.label(&self.services.redactor);
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
            self.append_json_line("actions.jsonl", &line)?;
        }
        let words = describe_result(&result);
        let number = index + 1;
        self.log_activity(&format!(
            "action {number} {} `{label}`: {words} ({duration_ms} ms)",
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
            self.log_error(&format!(
                "action {number} {} `{label}`: {words}{tail}",
                action.kind()
            ))?;
        }
        self.journal.append(IterationEvent::ActionFinished {
            iteration: self.state().iteration,
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
}

/// Tells whether a command was not started because of the directory it should start in.
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
