//! Carries out the actions of a reply, one after the other; each intent is on disk before its
//! effect, so that a crash between them is settled by looking at the world.

use std::time::Duration;

use ralph_core::action::{Action, Response, clean_message, rules};
use ralph_core::event::{ActionResult, Event, IterationOutcome};
use ralph_core::id::Digest;
use ralph_core::patch;
use ralph_core::path::{SandboxPath, WorkspacePath};
use ralph_core::ports::{Exec, SandboxError, WriteMode};
use ralph_core::task::OnActionError;
use ralph_core::{budget, event};
use serde::Serialize;

use crate::capture::{Capture, Captured};
use crate::control::Wish;
use crate::error::RunError;
use crate::git::{CommitOutcome, SandboxGit};
use crate::run::Run;

/// The largest file an action may read or leave behind.
const MAX_FILE: u64 = 5 << 20;
/// The longest a command may take, whatever the model asks for.
const MAX_TIMEOUT: Duration = Duration::from_hours(2);

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
    pub(crate) fn unreadable() -> Self {
        Self {
            outcome: IterationOutcome::Unreadable,
            reason: String::new(),
            total: 0,
            succeeded: 0,
            repaired: false,
        }
    }
}

/// One line of `actions.jsonl`.
#[derive(Serialize)]
struct Line<'a> {
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
struct Effect {
    result: ActionResult,
    output: Captured,
}

impl Effect {
    fn of(result: ActionResult) -> Self {
        Self { result, output: Captured::default() }
    }

    fn done(detail: impl Into<String>) -> Self {
        Self::of(ActionResult::Done { detail: detail.into() })
    }

    fn failed(why: impl Into<String>) -> Self {
        Self::of(ActionResult::Failed { why: why.into() })
    }

    fn refused(why: impl Into<String>) -> Self {
        Self::of(ActionResult::Refused { why: why.into() })
    }
}

/// A file action with its outcome computed: nothing is left to decide when it is performed.
enum FileStep {
    Write { path: WorkspacePath, bytes: Vec<u8>, detail: String },
    Delete { path: WorkspacePath },
    /// A crash came after the effect and before the record.
    AlreadyDone,
    Not(ActionResult),
}

impl Run {
    /// Performs the actions up to the first control action or failure; the rest is recorded as skipped.
    pub(crate) async fn perform(&mut self, response: &Response) -> Result<Performed, RunError> {
        let mut performed = Performed {
            outcome: IterationOutcome::Completed,
            total: response.actions.len(),
            repaired: response.repaired,
            ..Performed::unreadable()
        };
        self.forget_unrecorded_lines()?;
        let mut skip: Option<&str> = None;
        for (index, action) in response.actions.iter().enumerate() {
            if skip.is_none() {
                skip = self.reason_to_stop(&mut performed).await?;
            }
            let result = match (self.result_of(index), skip) {
                (Some(result), _) => result,
                (None, Some(why)) => {
                    let effect = Effect::of(ActionResult::Skipped { why: why.to_owned() });
                    self.tell(index, action, effect, Duration::ZERO)?
                }
                (None, None) => self.step(index, action).await?,
            };
            performed.succeeded += usize::from(result.is_success());
            if skip.is_none() {
                skip = self.after(index, action, &result, &mut performed);
            }
        }
        Ok(performed)
    }

    /// Looks between two actions: people's wishes and used-up budgets end an iteration early.
    async fn reason_to_stop(&mut self, performed: &mut Performed) -> Result<Option<&'static str>, RunError> {
        self.boundary().await?;
        if self.control.wish == Some(Wish::Rotate) {
            self.control.wish = None;
            performed.outcome = IterationOutcome::Rotated;
            return Ok(Some("a person wants a fresh iteration"));
        }
        let limits = self.pinned.contract().limits();
        if budget::exhausted(&limits, &self.spent()).is_some() {
            performed.outcome = IterationOutcome::OutOfBudget;
            return Ok(Some("a budget is used up"));
        }
        Ok(None)
    }

    /// Decides what an action's result means for the ones after it.
    fn after(&self, index: usize, action: &Action, result: &ActionResult, performed: &mut Performed) -> Option<&'static str> {
        let control = match action {
            Action::Rotate { reason } => Some((IterationOutcome::Rotated, reason)),
            Action::Pause { reason } => Some((IterationOutcome::Paused, reason)),
            Action::StopSuccess { reason } => Some((IterationOutcome::StopRequested, reason)),
            Action::StopFailure { reason } => Some((IterationOutcome::GaveUp, reason)),
            Action::Run { .. } | Action::Patch { .. } | Action::Write { .. } | Action::Commit { .. } => None,
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

    fn result_of(&self, index: usize) -> Option<ActionResult> {
        self.state().open.as_ref().and_then(|open| open.results.get(&index).cloned())
    }

    /// Performs one action: intent, effect, outcome.
    async fn step(&mut self, index: usize, action: &Action) -> Result<ActionResult, RunError> {
        let pending = self.state().open.as_ref().and_then(|open| open.pending.clone()).filter(|(at, _)| *at == index);
        if pending.is_some() && matches!(action, Action::Run { .. }) {
            // What it did until the crash is unknown; that is said before it runs again.
            self.log_error(&format!("`{}` was interrupted by a restart and runs again", action.label()))?;
            self.tell(index, action, Effect::of(ActionResult::Interrupted), Duration::ZERO)?;
        }
        let started = self.outside.clock.monotonic();
        let effect = match action {
            Action::Run { command, cwd, timeout } => {
                self.intend(index, action, None)?;
                self.run_command(command, cwd.as_ref(), *timeout).await?
            }
            Action::Patch { path, .. } | Action::Write { path, .. } => {
                let step = self.plan_file_step(action, path, pending.and_then(|(_, after)| after)).await?;
                let after = match &step {
                    FileStep::Write { bytes, .. } => Some(Digest::of(bytes)),
                    FileStep::Delete { .. } => Some(Digest::of(b"")),
                    FileStep::AlreadyDone | FileStep::Not(_) => None,
                };
                self.intend(index, action, after)?;
                self.do_file_step(step).await?
            }
            Action::Commit { message, paths } => {
                let before = if pending.is_some() { self.commit_before_restart(index).await? } else { None };
                self.intend(index, action, None)?;
                match before {
                    Some(effect) => effect,
                    None => self.commit(index, message, paths).await?,
                }
            }
            Action::Rotate { .. } | Action::Pause { .. } | Action::StopSuccess { .. } | Action::StopFailure { .. } => {
                self.intend(index, action, None)?;
                Effect::done("")
            }
        };
        let took = self.outside.clock.monotonic().saturating_sub(started);
        self.tell(index, action, effect, took)
    }

    fn intend(&mut self, index: usize, action: &Action, after: Option<Digest>) -> Result<(), RunError> {
        let iteration = self.state().iteration;
        self.journal.append(Event::ActionStarted {
            iteration,
            index,
            action: action.kind().to_owned(),
            label: action.label(),
            after,
        })?;
        Ok(())
    }

    async fn run_command(
        &mut self,
        command: &str,
        cwd: Option<&WorkspacePath>,
        timeout: Duration,
    ) -> Result<Effect, RunError> {
        let dir = cwd.map_or_else(SandboxPath::repo, SandboxPath::in_repo);
        let exec = Exec::shell(command, timeout.min(MAX_TIMEOUT)).in_dir(dir);
        let mut capture = Capture::new(&self.outside.redactor);
        let outcome = match self.exec(exec, &mut capture).await {
            Ok(outcome) => outcome,
            Err(RunError::Sandbox(error @ (SandboxError::Escapes(_) | SandboxError::NotFound(_)))) => {
                return Ok(Effect::failed(format!("the directory cannot be used: {error}")));
            }
            Err(error) => return Err(error),
        };
        let output = capture.finish();
        self.add_output(command, &output, outcome.ended)?;
        self.note_command(command, cwd, outcome.ended, &output);
        Ok(Effect {
            result: ActionResult::Ran {
                ended: outcome.ended,
                stdout_bytes: outcome.stdout_bytes,
                stderr_bytes: outcome.stderr_bytes,
            },
            output,
        })
    }

    /// Computes what a write or a patch will leave behind, without touching anything.
    async fn plan_file_step(
        &self,
        action: &Action,
        path: &WorkspacePath,
        intended: Option<Digest>,
    ) -> Result<FileStep, RunError> {
        let refused = match action {
            Action::Write { mode, .. } => rules::refuse_write(path, *mode),
            _ => rules::refuse_patch(path),
        };
        let workflow = rules::is_workflow(path) && !self.pinned.contract().allow_workflow_changes;
        let refused = refused.or_else(|| {
            workflow.then(|| "workflow files need `allow_workflow_changes: true` in the task's front matter".to_owned())
        });
        if let Some(why) = refused {
            return Ok(FileStep::Not(ActionResult::Refused { why }));
        }
        let old = match self.sandbox.read(&SandboxPath::in_repo(path), MAX_FILE).await {
            Ok(bytes) => Some(bytes),
            Err(SandboxError::NotFound(_)) => None,
            Err(SandboxError::Escapes(_)) => {
                let why = format!("`{path}` leads outside the repository");
                return Ok(FileStep::Not(ActionResult::Refused { why }));
            }
            Err(error @ (SandboxError::Gone(_) | SandboxError::Spawn { .. })) => return Err(error.into()),
            Err(error) => return Ok(FileStep::Not(ActionResult::Failed { why: error.to_string() })),
        };
        let now = Digest::of(old.as_deref().unwrap_or_default());
        if intended.is_some_and(|intended| intended == now) {
            return Ok(FileStep::AlreadyDone);
        }
        Ok(new_content(action, path, old))
    }

    async fn do_file_step(&mut self, step: FileStep) -> Result<Effect, RunError> {
        let done = match &step {
            FileStep::Not(result) => return Ok(Effect::of(result.clone())),
            FileStep::AlreadyDone => return Ok(Effect::done("was done before the restart")),
            FileStep::Write { path, bytes, .. } => {
                self.now.checks.clear();
                self.sandbox.write(&SandboxPath::in_repo(path), bytes, WriteMode::Replace).await
            }
            FileStep::Delete { path } => self.sandbox.delete(&SandboxPath::in_repo(path)).await,
        };
        match (done, step) {
            (Ok(()), FileStep::Write { detail, .. }) => Ok(Effect::done(detail)),
            (Ok(()), _) => Ok(Effect::done("deleted")),
            (Err(SandboxError::Escapes(path)), _) => Ok(Effect::refused(format!("`{path}` leads outside the repository"))),
            (Err(error @ (SandboxError::Gone(_) | SandboxError::Spawn { .. })), _) => Err(error.into()),
            (Err(error), _) => Ok(Effect::failed(error.to_string())),
        }
    }

    async fn commit(&mut self, index: usize, message: &str, paths: &[WorkspacePath]) -> Result<Effect, RunError> {
        if let Some(why) = paths.iter().find_map(rules::refuse_commit) {
            return Ok(Effect::refused(why));
        }
        let run = &self.state().plan.run;
        let message = format!("{}\n\nRalph-Run: {run}\n{}\n", clean_message(message), self.trailer(index));
        let message = self.outside.redactor.redact(&message).into_owned();
        let git = SandboxGit::new(&*self.sandbox);
        Ok(match git.commit(&message, paths).await {
            Ok(CommitOutcome::Made(commit)) => Effect::done(format!("commit {commit}")),
            Ok(CommitOutcome::Nothing) => Effect::done("nothing to commit"),
            Ok(CommitOutcome::Rejected(why)) => Effect::failed(why),
            Err(RunError::Git(error)) => Effect::failed(error.to_string()),
            Err(error) => return Err(error),
        })
    }

    /// The mark of a commit: no two commits of a run carry the same.
    fn trailer(&self, index: usize) -> String {
        format!("Ralph-Action: {}/{}/{index}", self.state().plan.run, self.state().iteration)
    }

    async fn commit_before_restart(&self, index: usize) -> Result<Option<Effect>, RunError> {
        let made = SandboxGit::new(&*self.sandbox).head_has(&self.trailer(index)).await?;
        Ok(made.map(|commit| Effect::done(format!("commit {commit} was made before the restart"))))
    }

    /// Tells an outcome: in `actions.jsonl`, in the logs, in the journal.
    fn tell(&mut self, index: usize, action: &Action, effect: Effect, took: Duration) -> Result<ActionResult, RunError> {
        let Effect { result, output } = effect;
        let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let label = self.outside.redactor.redact(&action.label()).into_owned();
        if !matches!(result, ActionResult::Interrupted) {
            let line = Line {
                index,
                kind: action.kind(),
                label: label.clone(),
                result: &result,
                duration_ms,
                stdout: &output.stdout,
                stderr: &output.stderr,
            };
            let mut text = serde_json::to_string(&line).unwrap_or_default();
            text.push('\n');
            self.append_open("actions.jsonl", text.as_bytes())?;
        }
        let words = describe(&result);
        self.log_activity(&format!("action {index} {} `{label}`: {words} ({duration_ms} ms)", action.kind()))?;
        if !result.is_success() && !matches!(result, ActionResult::Skipped { .. } | ActionResult::Interrupted) {
            let tail = output.tail(20);
            let tail = if tail.is_empty() { String::new() } else { format!("; output ends:\n{tail}") };
            self.log_error(&format!("action {index} {} `{label}`: {words}{tail}", action.kind()))?;
        }
        self.journal.append(Event::ActionFinished {
            iteration: self.state().iteration,
            index,
            action: action.kind().to_owned(),
            label,
            result: result.clone(),
            duration_ms,
            tail: if result.is_success() { String::new() } else { output.tail(5) },
        })?;
        Ok(result)
    }
}

fn describe(result: &event::ActionResult) -> String {
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

fn new_content(action: &Action, path: &WorkspacePath, old: Option<Vec<u8>>) -> FileStep {
    let failed = |why: String| FileStep::Not(ActionResult::Failed { why });
    match action {
        Action::Write { content, mode, .. } => {
            let bytes = match mode {
                WriteMode::Replace => content.clone().into_bytes(),
                WriteMode::Append => [old.unwrap_or_default(), content.clone().into_bytes()].concat(),
            };
            if bytes.len() as u64 > MAX_FILE {
                return failed(format!("`{path}` would have {} bytes, at most {MAX_FILE} are allowed", bytes.len()));
            }
            let detail = format!("{} bytes", bytes.len());
            FileStep::Write { path: path.clone(), bytes, detail }
        }
        Action::Patch { patch: diff, .. } => {
            let text = match old.map(String::from_utf8).transpose() {
                Ok(text) => text,
                Err(_) => return failed(format!("`{path}` is not a text file")),
            };
            match patch::apply(path.as_str(), text.as_deref(), diff) {
                Ok(patch::Patched { text: Some(text), fuzzy, .. }) => {
                    let detail = if fuzzy { "applied, not exactly where it said" } else { "applied" };
                    FileStep::Write { path: path.clone(), bytes: text.into_bytes(), detail: detail.into() }
                }
                Ok(patch::Patched { text: None, .. }) => FileStep::Delete { path: path.clone() },
                Err(error) => failed(error.to_string()),
            }
        }
        Action::Run { .. }
        | Action::Commit { .. }
        | Action::Rotate { .. }
        | Action::Pause { .. }
        | Action::StopSuccess { .. }
        | Action::StopFailure { .. } => failed("not a file action".into()),
    }
}
