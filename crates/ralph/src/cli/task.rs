//! `ralph task`: applies a changed task file to a run.

use std::path::PathBuf;

use clap::Args;
use ralph_app::AppError;
use ralph_app::planning;
use ralph_app::steering::{ProposedTask, propose_task, refused_error};
use ralph_core::run::Command;

use super::context::Context;
use super::exit::ExitCode;
use super::run_arg::{LAST_RUN, RunArg};
use super::steer;
use crate::terminal::styled_line::{StyledLine, Tone};

/// Arguments of `task`.
#[derive(Debug, Args)]
pub(super) struct TaskArgs {
    #[command(flatten)]
    pub run: RunArg,
    /// The changed task file [default: the one that the run was started with]
    pub file: Option<PathBuf>,
}

impl TaskArgs {
    /// Reads a single argument that is a file and no run as the file, for the last run.
    fn with_last_run(self, context: &Context) -> Self {
        let Self { run, file } = self;
        let path = context.app.environment().working_dir().join(&run.run);
        if file.is_none() && path.is_file() && context.app.find_run(&run.run).is_err() {
            let last = RunArg {
                run: LAST_RUN.to_owned(),
            };
            return Self {
                run: last,
                file: Some(PathBuf::from(run.run)),
            };
        }
        Self { run, file }
    }
}

/// Checks the file, shows its changes, and sends the command.
pub(super) async fn run(args: TaskArgs, context: &Context) -> Result<ExitCode, AppError> {
    let args = args.with_last_run(context);
    let dir = context.app.find_run(&args.run.run)?;
    let state = dir.state()?;
    let run = &state.plan.run;
    let command = Command::Task {
        contract: state.contract.clone(),
    };
    if let Some(why) = state.rejection_reason(&command) {
        return Err(refused_error(&state, &command, &why));
    }
    let file = args.file.clone();
    let file = file.unwrap_or_else(|| PathBuf::from(&state.plan.task_file));
    let (_, task) = planning::read_task(&file, &context.app)?;
    let Some(ProposedTask { contract, changes }) = propose_task(&dir, &state, &task, &context.app)?
    else {
        let line = StyledLine::from_text("run ")
            .strong(run.as_str())
            .plain(": this task file is already in force");
        context.output().print_lines(&[line])?;
        return Ok(ExitCode::Success);
    };
    let lines: Vec<StyledLine> = changes
        .iter()
        .map(|change| StyledLine::from_text("  ").wrapped(Tone::Plain, change))
        .collect();
    context.output().print_lines(&lines)?;
    steer::run(&args.run, &Command::Task { contract }, context).await
}
