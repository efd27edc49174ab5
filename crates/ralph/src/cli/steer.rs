//! `ralph pause`, `rotate`, `stop`, `guardrail`, `note` and `message`: send a command to a run and
//! print its effect.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use ralph_app::AppError;
use ralph_app::steering::{self, SentCommandOutcome, SteerReport, command_failed, send_command};
use ralph_core::advice::NoteKind;
use ralph_core::advice::{Guardrail, Note};
use ralph_core::run::Command;
use ralph_core::state::RunState;
use ralph_engine::store::RunDir;

use super::context::Context;
use super::exit::ExitCode;
use super::run_arg::{LeadingRunArg, RunArg};
use crate::terminal::styled_line::{StyledLine, Tone};

/// Arguments of `message`.
#[derive(Debug, Args)]
pub(super) struct MessageArgs {
    #[command(flatten)]
    pub run: LeadingRunArg,
    /// The message
    #[arg(num_args = 1.., value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub words: Vec<String>,
}

/// Arguments of `guardrail`.
#[derive(Debug, Args)]
pub(super) struct GuardrailArgs {
    #[command(flatten)]
    pub run: RunArg,
    /// Name the guardrail in a few words
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    pub name: String,
    /// Describe when the mistake tends to happen
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    pub trigger: String,
    /// Describe what to do instead
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    pub instruction: String,
    /// Describe the evidence for it
    #[arg(long, default_value = "")]
    pub evidence: String,
}

/// Arguments of `note`.
#[derive(Debug, Args)]
pub(super) struct NoteArgs {
    #[command(flatten)]
    pub run: LeadingRunArg,
    /// The hint, in one line
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub text: Option<String>,
    /// Choose the kind of hint
    #[arg(long, value_enum, default_value = "clarify")]
    pub kind: NoteKindName,
    /// Name the author
    #[arg(long, default_value = "")]
    pub author: String,
}

/// The kind of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum NoteKindName {
    /// The hint clarifies a requirement
    Clarify,
    /// The hint points to a file
    File,
    /// The hint states a decision
    Decision,
}

impl From<NoteKindName> for NoteKind {
    fn from(name: NoteKindName) -> Self {
        match name {
            NoteKindName::Clarify => Self::Clarify,
            NoteKindName::File => Self::File,
            NoteKindName::Decision => Self::Decision,
        }
    }
}

/// Sends a command that changes how the run continues, and prints its effect.
pub(super) async fn run(
    args: &RunArg,
    command: &Command,
    context: &Context,
) -> Result<ExitCode, AppError> {
    let report = steering::steer(&args.run, command, &context.app).await?;
    print_report(&report, context)
}

/// Prints the effect of a command.
pub(super) fn print_report(report: &SteerReport, context: &Context) -> Result<ExitCode, AppError> {
    let line = StyledLine::from_text("run ")
        .strong(report.run.as_str())
        .plain(": ")
        .wrapped(Tone::Plain, &report.effect);
    context.output().print_lines(&[line])?;
    Ok(ExitCode::Success)
}

/// Adds a guardrail.
pub(super) async fn guardrail(
    args: GuardrailArgs,
    context: &Context,
) -> Result<ExitCode, AppError> {
    let guardrail = Guardrail {
        name: args.name,
        trigger: args.trigger,
        instruction: args.instruction,
        evidence: args.evidence,
    };
    send_and_report(&args.run, Command::Guardrail(guardrail), context).await
}

/// Adds a note.
pub(super) async fn note(args: NoteArgs, context: &Context) -> Result<ExitCode, AppError> {
    let (run, text) = args.run.with_value(args.text, ("note", "TEXT"))?;
    let note = Note {
        kind: args.kind.into(),
        text,
        author: args.author,
    };
    send_and_report(&run, Command::Note(note), context).await
}

/// Sends a message to the agent or model.
pub(super) async fn message(args: MessageArgs, context: &Context) -> Result<ExitCode, AppError> {
    let usage = ("message", "TEXT");
    let (dir, text) = args.run.with_words(&args.words, usage, &context.app)?;
    send_to_run(&dir, Command::Message { text }, context).await
}

/// Sends a command that is executed, and prints its result.
pub(super) async fn send_and_report(
    run: &RunArg,
    command: Command,
    context: &Context,
) -> Result<ExitCode, AppError> {
    let dir = context.app.find_run(&run.run)?;
    send_to_run(&dir, command, context).await
}

async fn send_to_run(
    dir: &RunDir,
    command: Command,
    context: &Context,
) -> Result<ExitCode, AppError> {
    let outcome = Box::pin(send_command(dir, command.clone(), &context.app)).await?;
    let state = dir.state()?;
    let effect = match outcome {
        SentCommandOutcome::Done(done) if done.succeeded => done.detail,
        SentCommandOutcome::Done(done) => {
            return Err(command_failed(&state, command.verb(), &done.detail));
        }
        SentCommandOutcome::Deferred => command.effect(state.plan.agent.is_some()),
    };
    context.output().print_lines(&[run_line(&state, &effect)])?;
    Ok(ExitCode::Success)
}

/// Formats a line about a run.
pub(super) fn run_line(state: &RunState, text: &str) -> StyledLine {
    StyledLine::from_text("run ")
        .strong(state.plan.run.as_str())
        .plain(": ")
        .wrapped(Tone::Plain, text)
}
