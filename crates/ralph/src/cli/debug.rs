//! `ralph debug`: runs a command of the task in the run's sandbox. It accepts only the ids of the
//! contract, no command lines.

use clap::Args;
use ralph_app::AppError;
use ralph_app::steering::{SentCommandOutcome, command_failed, debug_commands, send_command};
use ralph_core::run::Command;
use ralph_engine::store::RunDir;

use super::context::Context;
use super::exit::ExitCode;
use super::run_arg::{LAST_RUN, RunArg};
use super::steer::run_line;
use crate::terminal::styled_line::StyledLine;

/// Arguments of `debug`.
#[derive(Debug, Args)]
pub(super) struct DebugArgs {
    #[command(flatten)]
    pub run: RunArg,
    /// The id of the command; without it, the ids are listed
    pub id: Option<String>,
}

/// Lists the ids, or runs a command and prints its output.
pub(super) async fn run(args: DebugArgs, context: &Context) -> Result<ExitCode, AppError> {
    let (dir, ids, id) = named_command(args, context)?;
    let Some(id) = id else {
        let lines: Vec<StyledLine> = ids.iter().map(|id| StyledLine::from_text(id)).collect();
        context.output().print_lines(&lines)?;
        return Ok(ExitCode::Success);
    };
    if !ids.contains(&id) {
        return Err(AppError::usage(
            format!("there is no id `{id}`"),
            "only commands of the task's contract can be run",
            format!("use one of {}", ids.join(", ")),
        ));
    }
    let command = Command::Debug { id };
    let outcome = Box::pin(send_command(&dir, command.clone(), &context.app)).await?;
    let state = dir.state()?;
    let result = match outcome {
        SentCommandOutcome::Done(result) => result,
        SentCommandOutcome::Deferred => {
            let effect = command.effect(state.plan.agent.is_some());
            context.output().print_lines(&[run_line(&state, &effect)])?;
            return Ok(ExitCode::Success);
        }
    };
    let printed: Vec<StyledLine> = result.output.lines().map(StyledLine::from_text).collect();
    context.output().print_lines(&printed)?;
    if result.succeeded {
        context
            .output()
            .print_lines(&[run_line(&state, &result.detail)])?;
        return Ok(ExitCode::Success);
    }
    Err(command_failed(&state, "debug", &result.detail))
}

/// Returns the run, the ids of its contract and the chosen id. A single argument that names no run can
/// be an id of the last run's contract.
fn named_command(
    args: DebugArgs,
    context: &Context,
) -> Result<(RunDir, Vec<String>, Option<String>), AppError> {
    let found = context.app.find_run(&args.run.run);
    if args.id.is_none() && found.is_err() {
        let last = context.app.find_run(LAST_RUN)?;
        let ids = contract_ids(&last)?;
        if ids.contains(&args.run.run) {
            return Ok((last, ids, Some(args.run.run)));
        }
    }
    let dir = found?;
    let ids = contract_ids(&dir)?;
    Ok((dir, ids, args.id))
}

/// Returns the ids of the current contract.
fn contract_ids(dir: &RunDir) -> Result<Vec<String>, AppError> {
    let commands = debug_commands(dir, &dir.state()?)?;
    Ok(commands.into_iter().map(|command| command.id).collect())
}
