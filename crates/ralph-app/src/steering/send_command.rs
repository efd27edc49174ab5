//! Commands that request an action: `ralph note`, `ralph guardrail`, `ralph message`, and the basis
//! of `allow`, `diagnose` and `debug`.
//!
//! A process that works on the run executes the command at its next opportunity. Without such a
//! process, this process executes it.

use std::time::Instant;

use ralph_core::event::{CommandEvent, Event};
use ralph_core::id::Digest;
use ralph_core::run::{Command, OfflineCommand};
use ralph_core::state::RunState;
use ralph_engine::error::RunError;
use ralph_engine::journal::{self, Journal};
use ralph_engine::mailbox::{CommandFile, Mailbox};
use ralph_engine::store::RunDir;
use ralph_engine::user_commands::{self, CommandResult};
use tokio::sync::watch;

use super::steer::{REPLY_TIMEOUT, new_command_id, no_reply_error, refused_error};
use crate::app::App;
use crate::error::AppError;
use crate::follow::{JournalFollower, POLL_INTERVAL};
use crate::planning::pinned_settings;
use crate::providers::gate_setup::GateSetup;
use crate::scm;

/// The number of digits of a key's digest in the id of its command.
const KEY_DIGITS: usize = 32;

/// The outcome of a command.
pub enum SentCommandOutcome {
    /// The command was executed, successfully or not.
    Done(CommandResult),
    /// The command was accepted and is executed according to [`Command::traits`].
    Deferred,
}

/// Creates the error of a command that was accepted and failed.
pub fn command_failed(state: &RunState, verb: &str, why: &str) -> AppError {
    let id = &state.plan.run;
    AppError::runtime(
        format!("cannot {verb} run `{id}`"),
        why,
        format!("see `ralph logs --errors {id}`"),
    )
}

/// Sends a command to a run and waits until it is executed.
pub async fn send_command(
    dir: &RunDir,
    command: Command,
    app: &App,
) -> Result<SentCommandOutcome, AppError> {
    Box::pin(send_as(new_command_id(app), dir, command, app)).await
}

/// Returns the accepted command that was sent with a key of the caller, and its outcome so far.
pub fn find_keyed_command(
    key: &str,
    dir: &RunDir,
) -> Result<Option<(Command, SentCommandOutcome)>, AppError> {
    let suffix = key_suffix(key);
    let mut sent: Option<(String, Command)> = None;
    let mut done = None;
    for record in journal::read(&dir.journal())? {
        let Event::Command(event) = &record.event else {
            continue;
        };
        if let CommandEvent::CommandReceived {
            id,
            command,
            refused: None,
        } = event
            && id.ends_with(&suffix)
        {
            sent = Some((id.clone(), command.clone()));
        } else if let Some((id, _)) = &sent {
            done = done.or_else(|| command_result(&record.event, id));
        }
    }
    Ok(sent.map(|(_, command)| {
        let outcome = done.map_or(SentCommandOutcome::Deferred, SentCommandOutcome::Done);
        (command, outcome)
    }))
}

/// Sends a command with a key of the caller, by which [`find_keyed_command`] finds it later.
pub async fn send_keyed_command(
    key: &str,
    dir: &RunDir,
    command: Command,
    app: &App,
) -> Result<SentCommandOutcome, AppError> {
    let id = format!("{}{}", new_command_id(app), key_suffix(key));
    Box::pin(send_as(id, dir, command, app)).await
}

/// Returns the end of the id of a command with a key.
fn key_suffix(key: &str) -> String {
    let digest = Digest::compute(key.as_bytes());
    format!("-{}", &digest.as_str()[..KEY_DIGITS])
}

async fn send_as(
    id: String,
    dir: &RunDir,
    command: Command,
    app: &App,
) -> Result<SentCommandOutcome, AppError> {
    let state = dir.state()?;
    let is_pending = state
        .pending_commands
        .iter()
        .any(|(_, pending)| *pending == command);
    let is_unattended = !dir.is_held();
    if let Some(why) = state
        .rejection_reason(&command)
        .filter(|_| !(is_unattended && is_pending))
    {
        return Err(refused_error(&state, &command, &why));
    }
    if !is_unattended && let Some(outcome) = send_to_process(dir, &state, (&id, &command))? {
        return Ok(outcome);
    }
    let (clock, redactor) = (app.clock(), app.redactor());
    let mut journal = Journal::open(dir, clock.clone(), redactor.clone())?;
    let command_file = CommandFile { id, command };
    let applied =
        user_commands::apply_offline(dir, &mut journal, &command_file, (&*clock, &redactor));
    if let Some(done) = applied.map_err(|error| cannot_perform(&state, &error))? {
        return Ok(SentCommandOutcome::Done(done));
    }
    let (plan, app) = pinned_settings::for_existing_run(&state.plan, app)?;
    scm::connect_for_plan(&plan, &app).await?;
    let providers = app.providers()?;
    let services = if command_file.command.traits().offline == OfflineCommand::CallsModel {
        app.load_model_keys().await?;
        providers.services_for_existing((&plan, &state), GateSetup::default())?
    } else {
        providers.services_without_model(&plan)?
    };
    // Ctrl-C ends this process; commands in progress are in the journal.
    let (_interrupt, interrupted) = watch::channel(false);
    let done = user_commands::run_offline(dir, journal, &services, command_file, interrupted);
    let done = Box::pin(done)
        .await
        .map_err(|error| cannot_perform(&state, &error))?;
    Ok(done.map_or(SentCommandOutcome::Deferred, SentCommandOutcome::Done))
}

fn cannot_perform(state: &RunState, error: &RunError) -> AppError {
    AppError::runtime(
        format!("cannot apply the command to run `{}`", state.plan.run),
        error.to_string(),
        error.hint(),
    )
}

/// Puts the command in the mailbox and waits for the answer. Returns `None` if the process died.
fn send_to_process(
    dir: &RunDir,
    state: &RunState,
    (id, command): (&str, &Command),
) -> Result<Option<SentCommandOutcome>, AppError> {
    let mut reader = JournalFollower::new(dir);
    reader.read_new(&mut |_, _| {})?;
    let mailbox = Mailbox::new(dir.commands());
    mailbox.send(id, command.clone())?;
    let takes_long = command.traits().is_slow;
    let start = Instant::now();
    let mut accepted = false;
    loop {
        let held = dir.is_held();
        let mut refusal = None;
        let mut done = None;
        reader.read_new(&mut |record, _| {
            if let Event::Command(CommandEvent::CommandReceived {
                id: received_id,
                refused,
                ..
            }) = &record.event
                && received_id == id
            {
                accepted = refused.is_none();
                refusal.clone_from(refused);
            }
            done = done.take().or_else(|| command_result(&record.event, id));
        })?;
        let is_late = start.elapsed() > REPLY_TIMEOUT;
        match (refusal, done) {
            (_, Some(done)) => return Ok(Some(SentCommandOutcome::Done(done))),
            (Some(why), None) => return Err(refused_error(state, command, &why)),
            (None, None) if accepted && (!held || (is_late && !takes_long)) => {
                return Ok(Some(SentCommandOutcome::Deferred));
            }
            (None, None) if !held => {
                mailbox.discard(id);
                return Ok(None);
            }
            (None, None) if is_late && !accepted => return Err(no_reply_error(state, command)),
            (None, None) => std::thread::sleep(POLL_INTERVAL),
        }
    }
}

/// Returns the result of a command if the event contains it.
fn command_result(event: &Event, id: &str) -> Option<CommandResult> {
    let Event::Command(CommandEvent::CommandDone {
        id: received_id,
        done,
        detail,
        output,
    }) = event
    else {
        return None;
    };
    (received_id == id).then(|| CommandResult {
        succeeded: *done,
        detail: detail.clone(),
        output: output.clone(),
    })
}
