//! Commands that ask for something to be done: `ralph note`, `ralph guardrail`, `ralph message`, and
//! what `allow`, `diagnose` and `debug` are made of.
//!
//! A process that works on the run does it at its next chance. For a run that nobody works on, this
//! process does it.

use std::time::Instant;

use ralph_core::advice::{Note, Sign};
use ralph_core::event::Event;
use ralph_core::run::Command;
use ralph_core::state::RunState;
use ralph_engine::errands::{self, Done};
use ralph_engine::error::RunError;
use ralph_engine::journal::Journal;
use ralph_engine::mailbox::{Letter, Mailbox};
use ralph_engine::run::Outside;
use ralph_engine::store::RunDir;
use tokio::sync::watch;

use super::args::RunArg;
use super::context::Context;
use super::error::CliError;
use super::exit::ExitCode;
use super::steer::{PATIENCE, new_id, refused, silent};
use super::steer_args::{GuardrailArgs, MessageArgs, NoteArgs};
use crate::terminal::follow::{POLL, Reader};
use crate::terminal::line::Line;
use crate::wire::joined::Joined;

/// What came of a command.
pub(super) enum Answer {
    /// It was done, or it could not be.
    Done(Done),
    /// It was accepted and will be done before the run's next iteration.
    Later,
}

/// Adds a sign to the guardrails.
pub(super) async fn guardrail(
    args: GuardrailArgs,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let sign = Sign {
        name: args.name,
        trigger: args.trigger,
        instruction: args.instruction,
        evidence: args.evidence,
    };
    tell(&args.run, Command::Guardrail(sign), context).await
}

/// Adds a hint to the notes.
pub(super) async fn note(args: NoteArgs, context: &Context) -> Result<ExitCode, CliError> {
    let note = Note {
        kind: args.kind.into(),
        text: args.text,
        author: args.author,
    };
    tell(&args.run, Command::Note(note), context).await
}

/// Sends a message to who does the work.
pub(super) async fn message(args: MessageArgs, context: &Context) -> Result<ExitCode, CliError> {
    let text = args.words.join(" ");
    tell(&args.run, Command::Message { text }, context).await
}

async fn tell(run: &RunArg, command: Command, context: &Context) -> Result<ExitCode, CliError> {
    let dir = context.find(run)?;
    let verb = command.verb();
    let answer = Box::pin(give(&dir, command, context)).await?;
    let state = dir.state()?;
    let said = match answer {
        Answer::Done(done) if done.done => done.detail,
        Answer::Done(done) => return Err(failed(&state, verb, &done.detail)),
        Answer::Later => format!("{verb} accepted; it is done before the next iteration"),
    };
    context.output().lines(&[line(&state, &said)])?;
    Ok(ExitCode::Success)
}

/// Tells something about a run in a line.
pub(super) fn line(state: &RunState, said: &str) -> Line {
    Line::of("run ")
        .strong(state.plan.run.as_str())
        .plain(": ")
        .plain(said)
}

/// Makes the error of a command that was taken and did not work out.
pub(super) fn failed(state: &RunState, verb: &str, why: &str) -> CliError {
    let id = &state.plan.run;
    CliError::runtime(
        format!("cannot {verb} run `{id}`"),
        why,
        format!("see `ralph logs --errors {id}`"),
    )
}

/// Gives a run a command and waits until it is done.
pub(super) async fn give(
    dir: &RunDir,
    command: Command,
    context: &Context,
) -> Result<Answer, CliError> {
    let state = dir.state()?;
    let is_pending = state.errands.iter().any(|(_, errand)| *errand == command);
    let alone = !dir.is_held();
    if let Some(why) = state.refuses(&command).filter(|_| !(alone && is_pending)) {
        return Err(refused(&state, &command, &why));
    }
    if !alone && let Some(answer) = ask(dir, &state, &command, context)? {
        return Ok(answer);
    }
    let (clock, redactor) = (context.clock(), context.redactor());
    let mut journal = Journal::open(dir, clock.clone(), redactor.clone())?;
    let letter = Letter {
        id: new_id(context),
        command,
    };
    let noted = errands::note_down(dir, &mut journal, &letter, (&*clock, &redactor));
    if let Some(done) = noted.map_err(|error| cannot(&state, &error))? {
        return Ok(Answer::Done(done));
    }
    let wiring = context.wiring()?;
    let (choice, joined) = (state.model_choice(), Joined::default());
    let outside = Outside {
        outage: context.settings()?.model.outage(),
        ..wiring.outside(&state.plan, &choice, &state.script, joined)?
    };
    // Ctrl-C ends this process; what was begun is in the journal.
    let (_interrupt, interrupted) = watch::channel(false);
    let done = errands::alone(dir, journal, &outside, letter, interrupted).await;
    let done = done.map_err(|error| cannot(&state, &error))?;
    Ok(done.map_or(Answer::Later, Answer::Done))
}

fn cannot(state: &RunState, error: &RunError) -> CliError {
    CliError::runtime(
        format!("cannot do that for run `{}`", state.plan.run),
        error.to_string(),
        error.hint(),
    )
}

/// Leaves the command in the mailbox and waits for the answer; none if the process went away.
fn ask(
    dir: &RunDir,
    state: &RunState,
    command: &Command,
    context: &Context,
) -> Result<Option<Answer>, CliError> {
    let mut reader = Reader::new(dir);
    reader.catch_up(&mut |_, _| {})?;
    let mailbox = Mailbox::new(dir.commands());
    let id = new_id(context);
    mailbox.send(&id, command.clone())?;
    let takes_long = matches!(command, Command::Diagnose | Command::Debug { .. });
    let start = Instant::now();
    let mut accepted = false;
    loop {
        let held = dir.is_held();
        let mut refusal = None;
        let mut done = None;
        reader.catch_up(&mut |record, _| {
            if let Event::CommandReceived {
                id: of, refused, ..
            } = &record.event
                && *of == id
            {
                accepted = refused.is_none();
                refusal.clone_from(refused);
            }
            done = done.take().or_else(|| outcome(&record.event, &id));
        })?;
        let is_late = start.elapsed() > PATIENCE;
        match (refusal, done) {
            (_, Some(done)) => return Ok(Some(Answer::Done(done))),
            (Some(why), None) => return Err(refused(state, command, &why)),
            (None, None) if accepted && (!held || (is_late && !takes_long)) => {
                return Ok(Some(Answer::Later));
            }
            (None, None) if !held => {
                mailbox.discard(&id);
                return Ok(None);
            }
            (None, None) if is_late && !accepted => return Err(silent(state, command)),
            (None, None) => std::thread::sleep(POLL),
        }
    }
}

/// Returns what came of a command, if the event tells that.
fn outcome(event: &Event, id: &str) -> Option<Done> {
    let Event::CommandDone {
        id: of,
        done,
        detail,
        output,
    } = event
    else {
        return None;
    };
    (of == id).then(|| Done {
        done: *done,
        detail: detail.clone(),
        output: output.clone(),
    })
}
