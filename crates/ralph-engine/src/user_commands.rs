//! User commands that do not change the status of a run: notes, guardrails, the doctor, commands of
//! the mode `debug`, hosts, messages. An accepted command is performed even after a crash.

use std::time::Duration;

use ralph_core::debug::{self, DebugLog, DebugTarget};
use ralph_core::doctor::{AppliedBy, DoctorTrigger};
use ralph_core::event::CommandEvent;
use ralph_core::ports::{Clock, Exec, Sandbox, SandboxProvider};
use ralph_core::run::{Command, CommandTiming, OfflineCommand};
use ralph_core::secret::Redactor;
use ralph_core::task::DoctorApply;
use tokio::sync::watch;

use crate::capture::Capture;
use crate::contract::PinnedTask;
use crate::controls::{Controls, GateHandle};
use crate::doctor::{apply_report, consult_doctor};
use crate::durable;
use crate::edits;
use crate::error::RunError;
use crate::file_digests;
use crate::immediate_commands;
use crate::journal::Journal;
use crate::mailbox::{CommandFile, Mailbox};
use crate::prepare::remove_orphaned_sandboxes;
use crate::recorder::Recorder;
use crate::run::{Run, attend};
use crate::services::Services;
use crate::store::RunDir;
use crate::workspace::{HostFiles, repair_logs};

/// The timeout of a command in the mode `debug`.
const DEBUG_TIMEOUT: Duration = Duration::from_mins(30);
/// The most bytes of its output, or of a log, that are returned.
const MAX_OUTPUT: usize = 16 << 10;

/// The result of a user command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandResult {
    pub succeeded: bool,
    /// A description of the effect or of the failure.
    pub detail: String,
    /// The output of a debug command; empty for others.
    pub output: String,
}

impl CommandResult {
    pub(crate) fn success(detail: impl Into<String>) -> Self {
        Self {
            succeeded: true,
            detail: detail.into(),
            output: String::new(),
        }
    }

    pub(crate) fn failure(detail: impl Into<String>) -> Self {
        Self {
            succeeded: false,
            ..Self::success(detail)
        }
    }
}

/// Returns whether a command may be executed while an iteration is open.
fn can_run_during_iteration(command: &Command) -> bool {
    command.traits().timing != CommandTiming::NextIteration
}

/// Performs the accepted commands that can be performed now.
pub(crate) async fn run_pending_commands(run: &mut Run) -> Result<(), RunError> {
    let is_open = run.recorder.state().open.is_some();
    let now = |(_, command): &&(String, Command)| !is_open || can_run_during_iteration(command);
    let due: Vec<(String, Command)> = run
        .recorder
        .state()
        .pending_commands
        .iter()
        .filter(now)
        .cloned()
        .collect();
    if due.is_empty() {
        return Ok(());
    }
    for (id, command) in due {
        run_command(
            &mut run.recorder,
            &mut run.controls,
            &run.services,
            &run.pinned,
            &id,
            &command,
            Some(&*run.bench.sandbox),
        )
        .await?;
    }
    if !is_open {
        run.bench.project(&run.recorder.files).await?;
    }
    Ok(())
}

/// Consults the doctor if it is due, and applies its report if the task allows it.
pub(crate) async fn consult_doctor_if_due(run: &mut Run) -> Result<(), RunError> {
    if run.recorder.state().open.is_some() {
        return Ok(());
    }
    let contract = run.pinned.contract();
    let (every, policy) = (contract.doctor_every.unwrap_or(0), contract.doctor_apply);
    let state = run.recorder.state();
    let routine = every > 0
        && state.iteration > 0
        && state.iteration.is_multiple_of(every)
        && state.doctor.last_seen_iteration < state.iteration
        && run.last_doctor_iteration != state.iteration;
    let trigger = if state.doctor.due {
        Some(DoctorTrigger::Gutter)
    } else if routine {
        Some(DoctorTrigger::Routine)
    } else {
        None
    };
    let apply = policy == DoctorApply::Auto && run.recorder.state().doctor.report.is_some();
    if trigger.is_none() && !apply {
        return Ok(());
    }
    if let Some(trigger) = trigger {
        run.last_doctor_iteration = run.recorder.state().iteration;
        consult_doctor(
            &mut run.recorder,
            &mut run.controls,
            &run.services,
            &run.pinned,
            trigger,
        )
        .await?;
        run.recorder.warn_about_budgets()?;
    }
    if policy == DoctorApply::Auto {
        apply_report(
            &mut run.recorder,
            &run.services,
            &run.pinned,
            AppliedBy::Policy,
        )?;
    }
    run.bench.project(&run.recorder.files).await
}

/// Runs a command and records its result.
async fn run_command(
    recorder: &mut Recorder,
    controls: &mut Controls,
    services: &Services,
    pinned: &PinnedTask,
    id: &str,
    command: &Command,
    sandbox: Option<&dyn Sandbox>,
) -> Result<CommandResult, RunError> {
    let iteration = recorder.state().iteration;
    let done = match command {
        Command::Note(note) => {
            let notes = note.append_to(&recorder.files.text("notes.md")?, iteration);
            recorder.files.replace("notes.md", notes.as_bytes())?;
            CommandResult::success("the note is in `notes.md`")
        }
        Command::Guardrail(guardrail) => {
            recorder.append_once("guardrails.md", &guardrail.render(iteration))?;
            CommandResult::success("the guardrail is in `guardrails.md`")
        }
        Command::Diagnose => {
            match consult_doctor(recorder, controls, services, pinned, DoctorTrigger::Person)
                .await?
            {
                Some(number) => {
                    CommandResult::success(format!("report {number} is in `diagnostics.md`"))
                }
                None => CommandResult::failure("the doctor failed; `errors.log` has the reason"),
            }
        }
        Command::Apply => match apply_report(recorder, services, pinned, AppliedBy::Person)? {
            Some(done) => CommandResult::success(done),
            None => CommandResult::failure("there is no report to apply"),
        },
        Command::Debug { id } => run_debug_command(recorder, controls, pinned, id, sandbox).await?,
        Command::Edit(edit) => edits::edit_file(recorder, edit, sandbox).await?,
        Command::AllowHost { host } => {
            immediate_commands::allow_host(&mut recorder.journal, &controls.gate, host)?
        }
        Command::Message { text } => {
            immediate_commands::queue_message(&mut recorder.journal, id, text)?
        }
        Command::Limits(change) => {
            immediate_commands::change_limits(&mut recorder.journal, change)?
        }
        Command::Answer { text } => {
            immediate_commands::queue_answer(&mut recorder.journal, id, text)?
        }
        Command::Pause
        | Command::Resume
        | Command::Rotate
        | Command::Stop
        | Command::Profile { .. }
        | Command::Task { .. }
        | Command::Mode { .. } => CommandResult::success("accepted"),
    };
    recorder.log_activity(&format!("{}: {}", command.verb(), done.detail))?;
    recorder.append(CommandEvent::CommandDone {
        id: id.to_owned(),
        done: done.succeeded,
        detail: done.detail.clone(),
        output: done.output.clone(),
    })?;
    Ok(done)
}

/// Runs the command, or reads the log, that a debug id names.
async fn run_debug_command(
    recorder: &mut Recorder,
    controls: &mut Controls,
    pinned: &PinnedTask,
    id: &str,
    sandbox: Option<&dyn Sandbox>,
) -> Result<CommandResult, RunError> {
    let command = match debug::resolve(pinned.contract(), id) {
        Ok(DebugTarget::Log(log)) => return read_log(recorder, log),
        Ok(DebugTarget::Command(command)) => command,
        Err(unknown) => return Ok(CommandResult::failure(unknown.to_string())),
    };
    let Some(sandbox) = sandbox else {
        return Ok(CommandResult::failure("its sandbox is gone"));
    };
    let mut capture = Capture::new(&recorder.redactor);
    let exec = Exec::shell(&command, recorder.command_timeout(DEBUG_TIMEOUT));
    let running = sandbox.exec(exec, None, &mut capture);
    let outcome = attend(&mut recorder.journal, controls, running).await??;
    let output = capture.finish();
    Ok(CommandResult {
        succeeded: outcome.ended.is_success(),
        detail: format!("`{command}`: {}", outcome.ended),
        output: output_tail(&output.both).to_owned(),
    })
}

fn read_log(recorder: &Recorder, log: DebugLog) -> Result<CommandResult, RunError> {
    let last = recorder.state().last_metrics.as_ref();
    let last = last.map_or(0, |metrics| metrics.iteration);
    let path = match log {
        DebugLog::Activity => recorder.dir.file("activity.log"),
        DebugLog::Errors => recorder.dir.file("errors.log"),
        DebugLog::TestOutput => recorder.dir.iteration(last).join("test_output.txt"),
    };
    Ok(CommandResult {
        succeeded: true,
        detail: format!("the end of `{}`", path.display()),
        output: durable::tail(&path, MAX_OUTPUT as u64)?,
    })
}

fn output_tail(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(MAX_OUTPUT))..]
}

/// Returns the gate of a run that no process works on.
fn gate_of_idle_run(journal: &Journal) -> GateHandle {
    match journal.state().plan.network {
        Some(_) => GateHandle::Closed,
        None => GateHandle::Missing,
    }
}

/// Accepts a command and returns its id, or returns why it is refused.
fn accept(
    journal: &mut Journal,
    id: &str,
    command: &Command,
) -> Result<Result<String, String>, RunError> {
    // A command that was accepted by a crashed process is still pending.
    let mut queued = journal.state().pending_commands.iter();
    if let Some((pending, _)) = queued.find(|(_, earlier)| earlier == command) {
        return Ok(Ok(pending.clone()));
    }
    let refused = journal.state().rejection_reason(command);
    let gate = gate_of_idle_run(journal);
    if let Some(why) = refused.or_else(|| immediate_commands::refuse_without_gate(&gate, command)) {
        return Ok(Err(why));
    }
    journal.append(CommandEvent::CommandReceived {
        id: id.to_owned(),
        command: command.clone(),
        refused: None,
    })?;
    Ok(Ok(id.to_owned()))
}

/// Performs a command for a run that no process works on, if it needs only the run's own files:
/// allows a host or queues a message for the next process. None for any other command.
pub fn apply_offline(
    dir: &RunDir,
    journal: &mut Journal,
    file: &CommandFile,
    (clock, redactor): (&dyn Clock, &Redactor),
) -> Result<Option<CommandResult>, RunError> {
    let CommandFile { id, command } = file;
    if command.traits().offline != OfflineCommand::Journaled {
        return Ok(None);
    }
    let id = match accept(journal, id, command)? {
        Ok(id) => id,
        Err(why) => return Ok(Some(CommandResult::failure(why))),
    };
    let Some(done) =
        immediate_commands::run_immediately(journal, &gate_of_idle_run(journal), &id, command)?
    else {
        return Ok(None);
    };
    let mut files = HostFiles::open(dir, redactor.clone())?;
    let text = format!("{}: {}", command.verb(), done.detail);
    files.log_activity(clock.now(), journal.state().iteration, &text)?;
    files.sync()?;
    file_digests::append_files_event(dir, journal)?;
    Ok(Some(done))
}

/// Runs a command for a run that no process works on. None if it has to wait until the run is
/// resumed.
pub async fn run_offline(
    dir: &RunDir,
    mut journal: Journal,
    services: &Services,
    file: CommandFile,
    interrupt: watch::Receiver<bool>,
) -> Result<Option<CommandResult>, RunError> {
    let CommandFile { id, command } = file;
    let id = match accept(&mut journal, &id, &command)? {
        Ok(id) => id,
        Err(why) => return Ok(Some(CommandResult::failure(why))),
    };
    if journal.state().open.is_some() && !can_run_during_iteration(&command) {
        return Ok(None);
    }
    let files = HostFiles::open(dir, services.redactor.clone())?;
    let state = journal.state();
    let source = std::path::PathBuf::from(&state.plan.task_file);
    let pinned = PinnedTask::open(dir, source, &state.contract, &state.contracts)?;
    let sandbox = match (&command, &state.sandbox) {
        (Command::Debug { .. } | Command::Edit(_), Some(sandbox)) => {
            services.sandboxes.attach(sandbox).await?
        }
        _ => None,
    };
    let gate = gate_of_idle_run(&journal);
    let mut controls = Controls::new(Mailbox::new(dir.commands()), interrupt, gate);
    let (clock, redactor) = (services.clock.clone(), services.redactor.clone());
    let mut recorder = Recorder::new(dir.clone(), journal, files, clock, redactor);
    let result = run_command(
        &mut recorder,
        &mut controls,
        services,
        &pinned,
        &id,
        &command,
        sandbox.as_deref(),
    )
    .await?;
    recorder.files.sync()?;
    file_digests::append_files_event(dir, &mut recorder.journal)?;
    Ok(Some(result))
}

/// Cleans up after a crashed process, for a run that is stopped without being resumed: an
/// incomplete line of a log, and clean rooms that nothing else would remove.
pub async fn clean_up_after_crash(
    dir: &RunDir,
    journal: &mut Journal,
    sandboxes: &dyn SandboxProvider,
) -> Result<(), RunError> {
    repair_logs(dir)?;
    if journal.state().clean_rooms.is_empty() {
        return Ok(());
    }
    remove_orphaned_sandboxes(journal, sandboxes).await
}
