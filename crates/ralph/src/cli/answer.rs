//! `ralph answer`: answers the question of a run and continues it.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use ralph_app::AppError;
use ralph_app::steering::{SentCommandOutcome, command_failed, send_command};
use ralph_core::run::Command;

use super::context::Context;
use super::detach::ProcessPlace;
use super::exit::ExitCode;
use super::hand_over::ServerUse;
use super::resume;
use super::run_arg::{LeadingRunArg, RunArg};
use super::steer::run_line;

/// Arguments of `answer`.
#[derive(Debug, Args)]
pub(super) struct AnswerArgs {
    #[command(flatten)]
    pub run: LeadingRunArg,
    /// The answer
    #[arg(num_args = 1.., value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub words: Vec<String>,
    /// Continue the run in a background process
    #[arg(long)]
    pub detach: bool,
    /// Continue the run without the running server
    #[arg(long)]
    pub local: bool,
    /// Print JSON, one record per line
    #[arg(long)]
    pub json: bool,
}

/// Records the answer and continues the run. A process that works on the run continues it by itself.
pub(super) async fn run(args: AnswerArgs, context: &Context) -> Result<ExitCode, AppError> {
    let usage = ("answer", "TEXT");
    let (dir, text) = args.run.with_words(&args.words, usage, &context.app)?;
    let outcome = Box::pin(send_command(&dir, Command::Answer { text }, &context.app)).await?;
    let state = dir.state()?;
    let effect = match outcome {
        SentCommandOutcome::Done(done) if done.succeeded => done.detail,
        SentCommandOutcome::Done(done) => {
            return Err(command_failed(&state, "answer", &done.detail));
        }
        SentCommandOutcome::Deferred => "the answer is accepted".to_owned(),
    };
    if !args.json {
        context.output().print_lines(&[run_line(&state, &effect)])?;
    }
    if dir.is_held() {
        return Ok(ExitCode::Success);
    }
    let place = if args.detach {
        ProcessPlace::NewBackground
    } else {
        ProcessPlace::Foreground
    };
    let run = RunArg {
        run: state.plan.run.to_string(),
    };
    let worker = (place, ServerUse::from_flag(args.local));
    Box::pin(resume::resume(&run, worker, args.json, context)).await
}
