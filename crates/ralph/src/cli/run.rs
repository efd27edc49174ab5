//! `ralph run`: takes a task to a verified branch, or to an honest reason why not.

use std::io::{IsTerminal as _, Write as _};

use ralph_core::event::Event;
use ralph_engine::contract::Pinned;
use ralph_engine::journal::Journal;
use ralph_engine::store::RunDir;

use super::args::{RunArg, RunArgs};
use super::context::Context;
use super::drive::drive;
use super::error::CliError;
use super::exit::ExitCode;
use super::planning::{self, Planned};
use super::resume;
use crate::terminal::line::Line;
use crate::terminal::lines::life;
use crate::wire::Wiring;

/// Plans and starts a run, or continues the task's unfinished one.
pub(super) async fn run(args: RunArgs, context: &Context) -> Result<ExitCode, CliError> {
    let wiring = context.wiring()?;
    let (file, task) = planning::read_task(&args.file, context)?;
    if let Some(unfinished) = unfinished_run(&file.to_string_lossy(), &wiring)?
        && !args.dry_run
        && choose(&args, &unfinished)? == Choice::Resume
    {
        refuse_other_plan(&args)?;
        let run = RunArg { run: unfinished.id };
        return Box::pin(resume::resume(&run, args.json, context)).await;
    }
    let planned = planning::plan(&args, file, task, context, &wiring).await?;
    if args.dry_run {
        show_plan(&planned, args.json, context)?;
        return Ok(ExitCode::Success);
    }
    Box::pin(start(planned, args.json, context, &wiring)).await
}

/// Starts a planned run and works on it.
pub(super) async fn start(
    planned: Planned,
    is_json: bool,
    context: &Context,
    wiring: &Wiring,
) -> Result<ExitCode, CliError> {
    let mode = context.view_mode(is_json, &context.settings()?);
    let outside = wiring.outside(&planned.plan, None)?;
    let dir = wiring.state.run(&planned.plan.run);
    let journal = create(&dir, planned, wiring)?;
    Box::pin(drive(dir, journal, outside, mode)).await
}

fn create(dir: &RunDir, planned: Planned, wiring: &Wiring) -> Result<Journal, CliError> {
    let Planned {
        plan,
        task,
        notices,
    } = planned;
    dir.create()?;
    Pinned::pin(dir, plan.task_file.clone().into(), task)?;
    let mut journal = Journal::create(dir, plan, wiring.clock.clone(), wiring.redactor.clone())?;
    journal.append_all(notices.into_iter().map(|message| Event::Notice { message }))?;
    Ok(journal)
}

fn show_plan(planned: &Planned, is_json: bool, context: &Context) -> Result<(), CliError> {
    if is_json {
        context.output().json(&planned.plan)?;
        return Ok(());
    }
    context.output().lines(&life::plan(&planned.plan))?;
    let notices: Vec<Line> = planned
        .notices
        .iter()
        .map(|notice| Line::of("note: ").plain(notice))
        .collect();
    context.output().lines(&notices)?;
    Ok(())
}

/// A run of the same task file that has not come to its end.
struct Unfinished {
    id: String,
    /// Whether a process works on it.
    held: bool,
    status: &'static str,
}

fn unfinished_run(file: &str, wiring: &Wiring) -> Result<Option<Unfinished>, CliError> {
    for id in wiring.state.runs()?.iter().rev() {
        let dir = wiring.state.run(id);
        let Ok(state) = dir.state() else { continue };
        if state.plan.task_file != file {
            continue;
        }
        let unfinished = (!state.status.is_final()).then(|| Unfinished {
            id: id.to_string(),
            held: dir.is_held(),
            status: if state.status.is_active() {
                "interrupted"
            } else {
                state.status.word()
            },
        });
        return Ok(unfinished);
    }
    Ok(None)
}

#[derive(Debug, PartialEq, Eq)]
enum Choice {
    Resume,
    New,
}

/// Asks what to do with an unfinished run, unless a flag or the lack of a terminal answers.
fn choose(args: &RunArgs, unfinished: &Unfinished) -> Result<Choice, CliError> {
    let Unfinished { id, held, status } = unfinished;
    if args.again.new {
        return Ok(Choice::New);
    }
    if *held {
        return Err(CliError::runtime(
            format!("run `{id}` of this task is under way"),
            "another process works on it",
            format!("follow it with `ralph logs -f {id}`, or start another with `ralph run --new`"),
        ));
    }
    if args.again.resume {
        return Ok(Choice::Resume);
    }
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return Err(unfinished_error(unfinished));
    }
    let mut stderr = std::io::stderr();
    write!(
        stderr,
        "ralph: run {id} of this task is {status}. Continue it? [Y/n] "
    )
    .ok();
    stderr.flush().ok();
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).ok();
    let yes = matches!(answer.trim().to_lowercase().as_str(), "" | "y" | "yes");
    if yes {
        return Ok(Choice::Resume);
    }
    Err(unfinished_error(unfinished))
}

fn unfinished_error(unfinished: &Unfinished) -> CliError {
    let Unfinished { id, status, .. } = unfinished;
    CliError::runtime(
        format!("run `{id}` of this task is {status}"),
        "it has not come to its end",
        format!("continue it with `ralph resume {id}`, or start over with `ralph run --new`"),
    )
}

/// A run goes on as it was planned; flags that would plan another one are not silently ignored.
fn refuse_other_plan(args: &RunArgs) -> Result<(), CliError> {
    let given = [
        ("--model", args.model.is_some()),
        ("--profile", args.profile.is_some()),
        ("--repo", args.repo.is_some()),
        ("--sandbox", args.sandbox.is_some()),
        ("--engine", args.engine.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((flag, _)) => Err(CliError::usage(
            format!("`{flag}` cannot be used to continue a run"),
            "a run goes on with what it was planned with",
            "leave it out, or start over with `ralph run --new`",
        )),
    }
}
