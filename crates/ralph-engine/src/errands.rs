//! What people's commands ask for besides changing the course of a run: notes, signs, the doctor,
//! commands of the mode `debug`, hosts, messages. A command that was accepted is done, whatever crashes in between.

use std::time::Duration;

use ralph_core::debug::{self, Known, Log};
use ralph_core::doctor::{AppliedBy, Trigger};
use ralph_core::event::Event;
use ralph_core::ports::{Clock, Exec, Sandbox, SandboxProvider};
use ralph_core::run::Command;
use ralph_core::secret::Redactor;
use ralph_core::task::DoctorApply;
use tokio::sync::watch;

use crate::capture::Capture;
use crate::contract::Pinned;
use crate::control::{Control, Door};
use crate::desk::Desk;
use crate::durable;
use crate::error::RunError;
use crate::journal::Journal;
use crate::live;
use crate::mailbox::{Letter, Mailbox};
use crate::prepare::remove_leftovers;
use crate::recorded;
use crate::run::{Outside, Run, attend};
use crate::store::RunDir;
use crate::workspace::{Files, repair_logs};

/// How long a command of the mode `debug` may take.
const MAX_TIME: Duration = Duration::from_mins(30);
/// How much of its output, or of a log, is told.
const MAX_OUTPUT: usize = 16 << 10;

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// Whether it worked out.
    pub done: bool,
    /// What was done, or why not.
    pub detail: String,
    /// What was printed, for a command that prints.
    pub output: String,
}

impl Done {
    pub(crate) fn well(detail: impl Into<String>) -> Self {
        Self {
            done: true,
            detail: detail.into(),
            output: String::new(),
        }
    }

    pub(crate) fn not(detail: impl Into<String>) -> Self {
        Self {
            done: false,
            ..Self::well(detail)
        }
    }
}

/// Tells whether a command may be carried out while an iteration is open. What changes files that the
/// model may write as well, or asks for money, waits until the iteration has ended.
fn fits_into_an_iteration(command: &Command) -> bool {
    match command {
        Command::Guardrail(_) | Command::Diagnose | Command::Apply => false,
        Command::Note(_)
        | Command::Debug { .. }
        | Command::AllowHost { .. }
        | Command::Message { .. }
        | Command::Pause
        | Command::Resume
        | Command::Rotate
        | Command::Stop
        | Command::Profile { .. }
        | Command::Task { .. } => true,
    }
}

impl Run {
    /// Does what accepted commands ask for, as far as it can be done now.
    pub(crate) async fn run_errands(&mut self) -> Result<(), RunError> {
        let is_open = self.state().open.is_some();
        let now = |(_, command): &&(String, Command)| !is_open || fits_into_an_iteration(command);
        let errands: Vec<(String, Command)> =
            self.state().errands.iter().filter(now).cloned().collect();
        if errands.is_empty() {
            return Ok(());
        }
        for (id, command) in errands {
            let sandbox = &*self.sandbox;
            let mut desk = Desk {
                dir: &self.dir,
                journal: &mut self.journal,
                files: &mut self.files,
                pinned: &self.pinned,
                outside: &self.outside,
                control: &mut self.control,
            };
            desk.run_errand(&id, &command, Some(sandbox)).await?;
        }
        if !is_open {
            self.workspace.project(&*self.sandbox, &self.files).await?;
        }
        Ok(())
    }

    /// Lets the doctor look at the run if it is time, and applies its report if the task says so.
    pub(crate) async fn see_the_doctor(&mut self) -> Result<(), RunError> {
        if self.state().open.is_some() {
            return Ok(());
        }
        let contract = self.pinned.contract();
        let (every, policy) = (contract.doctor_every.unwrap_or(0), contract.doctor_apply);
        let state = self.state();
        let routine = every > 0
            && state.iteration > 0
            && state.iteration.is_multiple_of(every)
            && state.doctor.seen < state.iteration
            && self.doctor_tried != state.iteration;
        let trigger = if state.doctor.due {
            Some(Trigger::Gutter)
        } else if routine {
            Some(Trigger::Routine)
        } else {
            None
        };
        let apply = policy == DoctorApply::Auto && self.state().doctor.report.is_some();
        if trigger.is_none() && !apply {
            return Ok(());
        }
        if let Some(trigger) = trigger {
            self.doctor_tried = self.state().iteration;
            self.desk().consult(trigger).await?;
            self.warn_about_budgets()?;
        }
        if policy == DoctorApply::Auto {
            self.desk().apply_report(AppliedBy::Policy)?;
        }
        self.workspace.project(&*self.sandbox, &self.files).await
    }
}

impl Desk<'_> {
    /// Carries a command out and tells what came of it.
    async fn run_errand(
        &mut self,
        id: &str,
        command: &Command,
        sandbox: Option<&dyn Sandbox>,
    ) -> Result<Done, RunError> {
        let iteration = self.state().iteration;
        let done = match command {
            Command::Note(note) => {
                let notes = note.add_to(&self.files.text("notes.md")?, iteration);
                self.files.adopt("notes.md", notes.as_bytes())?;
                Done::well("the note is in `notes.md`")
            }
            Command::Guardrail(sign) => {
                self.append_once("guardrails.md", &sign.render(iteration))?;
                Done::well("the sign is in `guardrails.md`")
            }
            Command::Diagnose => match self.consult(Trigger::Person).await? {
                Some(number) => Done::well(format!("report {number} is in `diagnostics.md`")),
                None => Done::not("the doctor could not help; `errors.log` says why"),
            },
            Command::Apply => match self.apply_report(AppliedBy::Person)? {
                Some(done) => Done::well(done),
                None => Done::not("there is no report that could be applied"),
            },
            Command::Debug { id } => self.debug(id, sandbox).await?,
            Command::AllowHost { host } => live::allow(self.journal, &self.control.door, host)?,
            Command::Message { text } => live::queue(self.journal, id, text)?,
            Command::Pause
            | Command::Resume
            | Command::Rotate
            | Command::Stop
            | Command::Profile { .. }
            | Command::Task { .. } => Done::well("accepted"),
        };
        self.log_activity(&format!("{}: {}", command.verb(), done.detail))?;
        self.journal.append(Event::CommandDone {
            id: id.to_owned(),
            done: done.done,
            detail: done.detail.clone(),
            output: done.output.clone(),
        })?;
        Ok(done)
    }

    /// Starts what an id of the pinned contract stands for.
    async fn debug(&mut self, id: &str, sandbox: Option<&dyn Sandbox>) -> Result<Done, RunError> {
        let command = match debug::resolve(self.pinned.contract(), id) {
            Ok(Known::Log(log)) => return self.print(log),
            Ok(Known::Command(command)) => command,
            Err(unknown) => return Ok(Done::not(unknown.to_string())),
        };
        let Some(sandbox) = sandbox else {
            return Ok(Done::not("its sandbox is gone"));
        };
        let mut capture = Capture::new(&self.outside.redactor);
        let exec = Exec::shell(&command, self.time_left(MAX_TIME));
        let running = sandbox.exec(exec, &mut capture);
        let outcome = attend(self.journal, self.control, running).await??;
        let output = capture.finish();
        Ok(Done {
            done: outcome.ended.is_success(),
            detail: format!("`{command}`: {}", outcome.ended),
            output: end_of(&output.both).to_owned(),
        })
    }

    fn print(&self, log: Log) -> Result<Done, RunError> {
        let last = self.state().last_metrics.as_ref();
        let last = last.map_or(0, |metrics| metrics.iteration);
        let path = match log {
            Log::Activity => self.dir.file("activity.log"),
            Log::Errors => self.dir.file("errors.log"),
            Log::TestOutput => self.dir.iteration(last).join("test_output.txt"),
        };
        Ok(Done {
            done: true,
            detail: format!("the end of `{}`", path.display()),
            output: durable::tail(&path, MAX_OUTPUT as u64)?,
        })
    }
}

fn end_of(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(MAX_OUTPUT))..]
}

/// Returns the way out of a run that nobody works on.
fn nobodys_door(journal: &Journal) -> Door {
    match journal.state().plan.network {
        Some(_) => Door::Closed,
        None => Door::Missing,
    }
}

/// Accepts a command and returns its id, or says why not.
fn accept(
    journal: &mut Journal,
    id: &str,
    command: &Command,
) -> Result<Result<String, String>, RunError> {
    // One that was accepted by a process that died is still to be done.
    let mut errands = journal.state().errands.iter();
    if let Some((pending, _)) = errands.find(|(_, errand)| errand == command) {
        return Ok(Ok(pending.clone()));
    }
    let refused = journal.state().refuses(command);
    let door = nobodys_door(journal);
    if let Some(why) = refused.or_else(|| live::has_no_door(&door, command)) {
        return Ok(Err(why));
    }
    journal.append(Event::CommandReceived {
        id: id.to_owned(),
        command: command.clone(),
        refused: None,
    })?;
    Ok(Ok(id.to_owned()))
}

/// Does something for a run that nobody works on, if that needs nothing but the run's own files: lets
/// it reach a host when it goes on, or leaves it a message. None for any other command.
pub fn note_down(
    dir: &RunDir,
    journal: &mut Journal,
    letter: &Letter,
    (clock, redactor): (&dyn Clock, &Redactor),
) -> Result<Option<Done>, RunError> {
    let Letter { id, command } = letter;
    match command {
        Command::AllowHost { .. } | Command::Message { .. } => {}
        Command::Pause
        | Command::Resume
        | Command::Rotate
        | Command::Stop
        | Command::Profile { .. }
        | Command::Task { .. }
        | Command::Note(_)
        | Command::Guardrail(_)
        | Command::Diagnose
        | Command::Apply
        | Command::Debug { .. } => return Ok(None),
    }
    let id = match accept(journal, id, command)? {
        Ok(id) => id,
        Err(why) => return Ok(Some(Done::not(why))),
    };
    let Some(done) = live::do_at_once(journal, &nobodys_door(journal), &id, command)? else {
        return Ok(None);
    };
    let mut files = Files::open(dir, redactor.clone())?;
    let text = format!("{}: {}", command.verb(), done.detail);
    files.log_activity(clock.now(), journal.state().iteration, &text)?;
    files.sync()?;
    recorded::append(dir, journal)?;
    Ok(Some(done))
}

/// Carries a command out for a run that nobody works on. None if it has to wait until the run goes on.
pub async fn alone(
    dir: &RunDir,
    mut journal: Journal,
    outside: &Outside,
    letter: Letter,
    interrupt: watch::Receiver<bool>,
) -> Result<Option<Done>, RunError> {
    let Letter { id, command } = letter;
    let id = match accept(&mut journal, &id, &command)? {
        Ok(id) => id,
        Err(why) => return Ok(Some(Done::not(why))),
    };
    if journal.state().open.is_some() && !fits_into_an_iteration(&command) {
        return Ok(None);
    }
    let mut files = Files::open(dir, outside.redactor.clone())?;
    let state = journal.state();
    let source = std::path::PathBuf::from(&state.plan.task_file);
    let pinned = Pinned::open(dir, source, &state.contract, &state.contracts)?;
    let sandbox = match (&command, &state.sandbox) {
        (Command::Debug { .. }, Some(sandbox)) => outside.sandboxes.attach(sandbox).await?,
        _ => None,
    };
    let door = nobodys_door(&journal);
    let mut control = Control::new(Mailbox::new(dir.commands()), interrupt, door);
    let mut desk = Desk {
        dir,
        journal: &mut journal,
        files: &mut files,
        pinned: &pinned,
        outside,
        control: &mut control,
    };
    let done = desk.run_errand(&id, &command, sandbox.as_deref()).await?;
    files.sync()?;
    recorded::append(dir, &mut journal)?;
    Ok(Some(done))
}

/// Cleans up after a process that died, for a run that is stopped without being resumed: half a line of a log,
/// and clean rooms that nothing else would remove.
pub async fn clean_up(
    dir: &RunDir,
    journal: &mut Journal,
    sandboxes: &dyn SandboxProvider,
) -> Result<(), RunError> {
    repair_logs(dir)?;
    if journal.state().clean_rooms.is_empty() {
        return Ok(());
    }
    remove_leftovers(journal, sandboxes).await
}
