//! `ralph debug`: starts what an id of the task stands for, in the run's sandbox. There is no way to
//! send a command line.

use ralph_core::debug;
use ralph_core::run::Command;
use ralph_core::task::TaskFile;
use ralph_engine::store::RunDir;

use super::args::DebugArgs;
use super::context::Context;
use super::errand::{Answer, failed, give, line};
use super::error::CliError;
use super::exit::ExitCode;
use crate::terminal::line::Line;

/// Lists the ids, or starts one and prints what it printed.
pub(super) async fn run(args: DebugArgs, context: &Context) -> Result<ExitCode, CliError> {
    let dir = context.find(&args.run)?;
    let ids = ids(&dir)?;
    let Some(id) = args.id else {
        let lines: Vec<Line> = ids.iter().map(|id| Line::of(id)).collect();
        context.output().lines(&lines)?;
        return Ok(ExitCode::Success);
    };
    if !ids.contains(&id) {
        return Err(CliError::usage(
            format!("there is no id `{id}`"),
            "only what the task's contract names can be started",
            format!("use one of {}", ids.join(", ")),
        ));
    }
    let answer = Box::pin(give(&dir, Command::Debug { id }, context)).await?;
    let state = dir.state()?;
    let done = match answer {
        Answer::Done(done) => done,
        Answer::Later => {
            let said = "debug accepted; the journal tells what came of it";
            context.output().lines(&[line(&state, said)])?;
            return Ok(ExitCode::Success);
        }
    };
    let printed: Vec<Line> = done.output.lines().map(Line::of).collect();
    context.output().lines(&printed)?;
    if done.done {
        context.output().lines(&[line(&state, &done.detail)])?;
        return Ok(ExitCode::Success);
    }
    Err(failed(&state, "debug", &done.detail))
}

/// Returns the ids of the contract in force.
fn ids(dir: &RunDir) -> Result<Vec<String>, CliError> {
    let state = dir.state()?;
    let path = dir.kept_contract(&state.contract);
    let bytes = std::fs::read(&path).map_err(|error| {
        CliError::runtime(
            format!("cannot read the contract of run `{}`", state.plan.run),
            error.to_string(),
            "`ralph audit` shows what is damaged",
        )
    })?;
    let task = TaskFile::parse(&bytes).ok();
    Ok(task.map_or_else(Vec::new, |task| debug::ids(&task.contract)))
}
