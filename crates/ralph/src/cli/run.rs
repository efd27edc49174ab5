//! `ralph run`: takes a task to a verified branch, or to an honest reason why not.

use std::path::PathBuf;

use ralph_core::image::{AgentImage, Effort};
use ralph_core::task::TaskFile;
use ralph_engine::run::Outside;
use ralph_engine::store::RunDir;
use serde_json::json;

use super::agent::{self, Access};
use super::args::{RunArg, RunArgs};
use super::context::Context;
use super::creating::{self, Beside};
use super::drive::drive;
use super::error::CliError;
use super::exit::ExitCode;
use super::image;
use super::planning::{self, Planned};
use super::prune;
use super::resume;
use super::secrets;
use super::trust::{self, Review};
use super::unfinished::{self, Choice};
use crate::terminal::line::Line;
use crate::terminal::lines::life;
use crate::wire::Wiring;
use crate::wire::joined::pin_prices;

/// Plans and starts a run, or continues the task's unfinished one.
pub(super) async fn run(args: RunArgs, context: &Context) -> Result<ExitCode, CliError> {
    let wiring = context.wiring()?;
    let (file, task) = planning::read_task(&args.file, context)?;
    let unfinished = match unfinished::find(&file.to_string_lossy(), &wiring) {
        // A run that cannot be read is not in the way of one that starts over.
        Err(_) if args.again.new || args.dry_run => None,
        found => found?,
    };
    if let Some(unfinished) = unfinished
        && !args.dry_run
        && unfinished.choose(&args)? == Choice::Resume
    {
        unfinished.refuse_other_plan(&args, context)?;
        let run = RunArg {
            run: unfinished.plan.run.to_string(),
        };
        return Box::pin(resume::resume(&run, args.json, context)).await;
    }
    let review = trust::gate(&args, (&file, &task), (context, &wiring)).await?;
    if !review.is_clear() {
        return Box::pin(show_refused(&args, (file, task), &review, context)).await;
    }
    let access = agent::choose(&args, &task.contract, context).await?;
    // A credential that was found is kept out of everything from here on.
    let wiring = context.wiring()?;
    let ways = (context, &wiring);
    let mut planned = planning::plan(&args, file, task, access.as_ref(), ways).await?;
    secrets::refuse_in_plan(&planned.plan, &wiring.redactor)?;
    if args.dry_run {
        show_plan(&planned, &review, args.json, context)?;
        return Ok(ExitCode::Success);
    }
    let effort = if args.rebuild {
        Effort::Rebuild
    } else {
        Effort::Reuse
    };
    let beside = if args.again.new {
        Beside::Others
    } else {
        Beside::Nothing
    };
    creating::reserve(&mut planned.plan, &wiring)?;
    let work = Work {
        planned,
        access,
        effort,
        beside,
        is_json: args.json,
    };
    Box::pin(start(work, context, &wiring)).await
}

/// What is to be started.
pub(super) struct Work {
    /// Its id is reserved.
    pub(super) planned: Planned,
    pub(super) access: Option<Access>,
    pub(super) effort: Effort,
    pub(super) beside: Beside,
    pub(super) is_json: bool,
}

/// Starts a planned run and works on it, once its image is there.
pub(super) async fn start(
    work: Work,
    context: &Context,
    wiring: &Wiring,
) -> Result<ExitCode, CliError> {
    let dir = wiring.state.run(&work.planned.plan.run);
    let started = Box::pin(start_in(&dir, work, context, wiring)).await;
    if started.is_err() {
        dir.release();
    }
    started
}

async fn start_in(
    dir: &RunDir,
    work: Work,
    context: &Context,
    wiring: &Wiring,
) -> Result<ExitCode, CliError> {
    let Work {
        mut planned,
        access,
        effort,
        beside,
        is_json,
    } = work;
    let settings = context.settings()?;
    let mode = context.view_mode(is_json, &settings);
    let image = access.as_ref().map(|access| access.preset.image.as_str());
    let image = image.map_or(AgentImage::Plain, AgentImage::of_agent);
    image::ensure((&mut planned.plan, image), effort, mode, context, wiring).await?;
    let mut joined = wiring.join(&planned.plan, access, dir.root()).await?;
    let prices = joined.unpinned_prices.take();
    let outside = Outside {
        outage: settings.model.outage(),
        ..wiring.outside(&planned.plan, &planned.choice, &[], joined)?
    };
    planned
        .notices
        .extend(prune::tidy_up(&planned.plan, wiring).await);
    let journal = creating::create(dir, planned, beside, wiring).await?;
    pin_prices(prices.as_ref(), dir.root())?;
    Box::pin(drive(dir.clone(), journal, outside, mode)).await
}

/// Shows the plan of a run that its repository's proposals keep from being started, as far as it can be
/// made without them, and refuses it.
async fn show_refused(
    args: &RunArgs,
    (file, task): (PathBuf, TaskFile),
    review: &Review,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let refusal = trust::refusal(review, &args.file, &context.layers());
    let planned = async {
        let access = agent::choose(args, &task.contract, context).await?;
        let wiring = context.wiring()?;
        let ways = (context, &wiring);
        let planned = planning::plan(args, file, task, access.as_ref(), ways).await?;
        secrets::refuse_in_plan(&planned.plan, &wiring.redactor)?;
        Ok::<Planned, CliError>(planned)
    };
    match planned.await {
        Ok(planned) => show_plan(&planned, review, args.json, context)?,
        Err(_) if args.json => {
            let proposals = json!({"proposals": trust::json(review)});
            context.output().json(&proposals)?;
        }
        Err(_) => drop(context.output().lines(&trust::shown(review))?),
    }
    context.output().error(&refusal, false);
    Ok(refusal.code)
}

fn show_plan(
    planned: &Planned,
    review: &Review,
    is_json: bool,
    context: &Context,
) -> Result<(), CliError> {
    if is_json {
        // Our own types always serialize.
        let mut plan = serde_json::to_value(&planned.plan).unwrap_or_default();
        plan["proposals"] = trust::json(review);
        context.output().json(&plan)?;
        return Ok(());
    }
    context.output().lines(&life::plan(&planned.plan))?;
    let notices: Vec<Line> = planned
        .notices
        .iter()
        .map(|notice| Line::of("note: ").plain(notice))
        .collect();
    context.output().lines(&notices)?;
    let proposals = trust::shown(review);
    if !proposals.is_empty() {
        context
            .output()
            .lines(&[Line::of("the repository proposes:")])?;
        context.output().lines(&proposals)?;
    }
    Ok(())
}
