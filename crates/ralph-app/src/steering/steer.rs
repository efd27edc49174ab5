//! `ralph pause`, `rotate`, `stop` and `profile`: send a command to a run and wait for its answer.
//!
//! A process that works on the run reads the command from its mailbox and answers in the journal. A
//! run without a process can still be ended: then this process writes the journal.

use std::time::{Duration, Instant};

use ralph_core::event::{CommandEvent, Event, RunEvent};
use ralph_core::id::RunId;
use ralph_core::run::{self, Command, OfflineCommand, RunStatus};
use ralph_core::state::RunState;
use ralph_engine::file_digests;
use ralph_engine::journal::Journal;
use ralph_engine::mailbox::Mailbox;
use ralph_engine::store::RunDir;
use ralph_engine::user_commands;

use super::run_owner;
use crate::app::App;
use crate::error::AppError;
use crate::follow::{JournalFollower, POLL_INTERVAL};
use crate::planning::pinned_settings;

/// The timeout of an answer.
pub(super) const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// The effect of an accepted command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SteerReport {
    pub run: RunId,
    /// The effect in one sentence.
    pub effect: String,
}

/// Sends a command to the process that works on a run, and waits for its answer. Without such a
/// process, the command is applied here if possible.
pub async fn steer(query: &str, command: &Command, app: &App) -> Result<SteerReport, AppError> {
    let dir = app.find_run(query)?;
    let state = dir.state()?;
    if let Some(why) = state.rejection_reason(command) {
        return Err(refused_error(&state, command, &why));
    }
    let reply = if dir.is_held() {
        send_and_wait(&dir, &state, command, app)?
    } else {
        SteerReply::NoProcess
    };
    if reply == SteerReply::NoProcess {
        apply_without_process(&dir, &state, command, app).await?;
    }
    Ok(SteerReport {
        effect: command.effect(state.plan.agent.is_some()),
        run: state.plan.run,
    })
}

/// Checks that a run can switch to a profile: one of its plan, or one that was added to the
/// configuration later.
pub async fn require_profile(query: &str, profile: &str, app: &App) -> Result<(), AppError> {
    let state = app.find_run(query)?.state()?;
    let (plan, app) = pinned_settings::for_existing_run(&state.plan, app)?;
    let settings = plan.settings.clone().unwrap_or_default();
    app.load_model_keys().await?;
    app.models()?.for_pinned_profile(profile, &settings)?;
    Ok(())
}

/// The answer of the process that works on the run.
#[derive(Debug, PartialEq, Eq)]
enum SteerReply {
    Accepted,
    /// There is no such process, or it died before it answered.
    NoProcess,
}

/// Puts the command in the mailbox and waits for the answer in the journal.
fn send_and_wait(
    dir: &RunDir,
    state: &RunState,
    command: &Command,
    app: &App,
) -> Result<SteerReply, AppError> {
    let mut reader = JournalFollower::new(dir);
    reader.read_new(&mut |_, _| {})?;
    let mailbox = Mailbox::new(dir.commands());
    let id = new_command_id(app);
    mailbox.send(&id, command.clone())?;
    let start = Instant::now();
    loop {
        let held = dir.is_held();
        let mut reply = None;
        reader.read_new(&mut |record, _| {
            if let Event::Command(CommandEvent::CommandReceived {
                id: received_id,
                refused,
                ..
            }) = &record.event
                && *received_id == id
            {
                reply = Some(refused.clone());
            }
        })?;
        match reply {
            Some(None) => return Ok(SteerReply::Accepted),
            Some(Some(why)) => return Err(refused_error(state, command, &why)),
            None if !held => {
                mailbox.discard(&id);
                return Ok(SteerReply::NoProcess);
            }
            None if start.elapsed() > REPLY_TIMEOUT => return Err(no_reply_error(state, command)),
            None => std::thread::sleep(POLL_INTERVAL),
        }
    }
}

/// Creates the id of a command. Ids sort by time, so commands are executed in the order they were
/// sent.
pub(super) fn new_command_id(app: &App) -> String {
    let nanoseconds = app.clock().now().as_nanosecond();
    format!("{nanoseconds:020}-{}", std::process::id())
}

/// Ends a run that no process works on, or records a command for its next process.
async fn apply_without_process(
    dir: &RunDir,
    state: &RunState,
    command: &Command,
    app: &App,
) -> Result<(), AppError> {
    let id = &state.plan.run;
    match command.traits().offline {
        OfflineCommand::EndsRun => {}
        OfflineCommand::Recorded => return record_without_process(dir, state, command, app),
        OfflineCommand::NeedsProcess
        | OfflineCommand::Journaled
        | OfflineCommand::Executed
        | OfflineCommand::CallsModel => {
            return Err(AppError::refused(
                format!("cannot {}", attempt(command, id)),
                "no process works on it",
                format!("continue it with `ralph resume {id}`"),
            ));
        }
    }
    let mut journal = Journal::open(dir, app.clock(), app.redactor())?;
    kill_leftover_commands(journal.state(), app).await?;
    // The run may have ended in the meantime.
    let (status, mode) = (&journal.state().status, journal.state().mode);
    run::legal(status, mode, command).map_err(|why| refused_error(state, command, why))?;
    clean_up(dir, &mut journal, app).await?;
    let stopped = [
        Event::Command(CommandEvent::CommandReceived {
            id: format!("alone-{}", std::process::id()),
            command: command.clone(),
            refused: None,
        }),
        Event::Run(RunEvent::StatusChanged {
            status: RunStatus::Stopped,
        }),
    ];
    let files = file_digests::files_event(dir, journal.state());
    journal.append_all(files.into_iter().chain(stopped))?;
    Ok(())
}

/// Records a profile, a task file or a mode for a run that no process works on; `ralph resume` applies
/// it. Between two iterations, a mode applies immediately.
fn record_without_process(
    dir: &RunDir,
    state: &RunState,
    command: &Command,
    app: &App,
) -> Result<(), AppError> {
    let mut journal = Journal::open(dir, app.clock(), app.redactor())?;
    let (status, mode) = (&journal.state().status, journal.state().mode);
    run::legal(status, mode, command).map_err(|why| refused_error(state, command, why))?;
    journal.append(CommandEvent::CommandReceived {
        id: format!("alone-{}", std::process::id()),
        command: command.clone(),
        refused: None,
    })?;
    let state = journal.state();
    let wanted_mode = state.wanted_mode.filter(|_| state.open.is_none());
    if let Some(mode) = wanted_mode {
        journal.append(RunEvent::ModeChanged { mode })?;
    }
    Ok(())
}

/// Cleans up after a process that died, because the run will not be resumed.
async fn clean_up(dir: &RunDir, journal: &mut Journal, app: &App) -> Result<(), AppError> {
    let plan = journal.state().plan.clone();
    let sandboxes = app.providers()?.sandbox_provider_for(&plan)?;
    let cleaned = user_commands::clean_up_after_crash(dir, journal, &*sandboxes).await;
    cleaned.map_err(|error| {
        AppError::runtime(
            format!("cannot clean up after run `{}`", plan.run),
            error.to_string(),
            error.hint(),
        )
    })
}

/// Ends commands that a killed process left running in the run's sandbox.
async fn kill_leftover_commands(state: &RunState, app: &App) -> Result<(), AppError> {
    let Some(sandbox) = &state.sandbox else {
        return Ok(());
    };
    let sandboxes = app.providers()?.sandbox_provider_for(&state.plan)?;
    let attached = sandboxes.attach(sandbox).await;
    attached.map(drop).map_err(|error| {
        AppError::runtime(
            format!("cannot end the processes in sandbox `{sandbox}`"),
            error.to_string(),
            "end them manually, then try again",
        )
    })
}

/// Describes what a command does to a run, such as `add a note to run 260301-100000-0001`.
fn attempt(command: &Command, id: &RunId) -> String {
    match command {
        Command::AllowHost { host } => format!("allow `{host}` for run `{id}`"),
        Command::Message { .. } => format!("send run `{id}` a message"),
        Command::Task { .. } => format!("change the task of run `{id}`"),
        Command::Mode { .. } => format!("change the mode of run `{id}`"),
        Command::Profile { .. } => format!("change the model profile of run `{id}`"),
        Command::Note(_) => format!("add a note to run `{id}`"),
        Command::Guardrail(_) => format!("add a guardrail to run `{id}`"),
        Command::Edit(edit) => format!("edit `{}` of run `{id}`", edit.path),
        Command::Apply => format!("apply the report of run `{id}`"),
        Command::Debug { id: name } => format!("start the command `{name}` in run `{id}`"),
        Command::Pause
        | Command::Resume
        | Command::Rotate
        | Command::Stop
        | Command::Diagnose
        | Command::Answer { .. }
        | Command::Limits(_) => format!("{} run `{id}`", command.verb()),
    }
}

/// Returns the error of a command that the status or the mode of a run does not permit.
pub fn refused_error(state: &RunState, command: &Command, why: &str) -> AppError {
    let id = &state.plan.run;
    let what = format!("cannot {}", attempt(command, id));
    AppError::refused(
        what,
        why,
        format!("check its status with `ralph show {id}`"),
    )
}

pub(super) fn no_reply_error(state: &RunState, command: &Command) -> AppError {
    let id = &state.plan.run;
    AppError::runtime(
        format!("no answer from run `{id}` to {}", command.verb()),
        format!(
            "it has not answered within {} s; {}",
            REPLY_TIMEOUT.as_secs(),
            run_owner::describe_owner(state)
        ),
        format!("the command is still queued; see `ralph show {id}` later"),
    )
}
