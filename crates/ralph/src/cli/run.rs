//! `ralph run`: takes a task to a verified branch, or to an honest reason why not.

use std::path::PathBuf;

use ralph_core::image::{AgentImage, ImageEffort};
use ralph_core::task::TaskFile;
use ralph_engine::run::Services;
use ralph_engine::store::RunDir;
use serde_json::json;

use super::agent::{self, AgentAccess};
use super::args::{RunArg, RunArgs};
use super::context::Context;
use super::create_run::{self, UnfinishedRunPolicy};
use super::drive::drive;
use super::error::CliError;
use super::exit::ExitCode;
use super::image;
use super::planning::{self, PlannedRun};
use super::prune;
use super::resume;
use super::secrets;
use super::trust::{self, TrustReview};
use super::unfinished_run::{self, UnfinishedRunChoice};
use crate::providers::Providers;
use crate::providers::gate_setup::pin_prices;
use crate::terminal::lines::lifecycle;
use crate::terminal::styled_line::StyledLine;

/// Plans and starts a run, or continues the task's unfinished one.
pub(super) async fn run(args: RunArgs, context: &Context) -> Result<ExitCode, CliError> {
    let wiring = context.providers()?;
    let (file, task) = planning::read_task(&args.file, context)?;
    let unfinished = match unfinished_run::find_unfinished(&file.to_string_lossy(), &wiring) {
        // A run that cannot be read is not in the way of one that starts over.
        Err(_) if args.again.new || args.dry_run => None,
        found => found?,
    };
    if let Some(unfinished) = unfinished
        && !args.dry_run
        && unfinished.choose(&args)? == UnfinishedRunChoice::Resume
    {
        unfinished.refuse_other_plan(&args, context)?;
        let run = RunArg {
            run: unfinished.plan.run.to_string(),
        };
        return Box::pin(resume::resume(&run, args.json, context)).await;
    }
    let review = trust::require_approval(&args, (&file, &task), (context, &wiring)).await?;
    if !review.is_clear() {
        return Box::pin(show_refused(&args, (file, task), &review, context)).await;
    }
    let access = agent::agent_for_run(&args, &task.contract, context).await?;
    // A credential that was found is kept out of everything from here on.
    let wiring = context.providers()?;
    let ways = (context, &wiring);
    let mut planned = planning::plan_run(&args, file, task, access.as_ref(), ways).await?;
    secrets::refuse_in_plan(&planned.plan, &wiring.redactor)?;
    if args.dry_run {
        show_plan(&planned, &review, args.json, context)?;
        return Ok(ExitCode::Success);
    }
    let effort = if args.rebuild {
        ImageEffort::Rebuild
    } else {
        ImageEffort::Reuse
    };
    let beside = if args.again.new {
        UnfinishedRunPolicy::Allow
    } else {
        UnfinishedRunPolicy::Refuse
    };
    create_run::reserve(&mut planned.plan, &wiring)?;
    let work = RunStart {
        planned,
        access,
        effort,
        unfinished_runs: beside,
        is_json: args.json,
    };
    Box::pin(start(work, context, &wiring)).await
}

/// What is to be started.
pub(super) struct RunStart {
    /// Its id is reserved.
    pub(super) planned: PlannedRun,
    pub(super) access: Option<AgentAccess>,
    pub(super) effort: ImageEffort,
    pub(super) unfinished_runs: UnfinishedRunPolicy,
    pub(super) is_json: bool,
}

/// Starts a planned run and works on it, once its image is there.
pub(super) async fn start(
    work: RunStart,
    context: &Context,
    wiring: &Providers,
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
    work: RunStart,
    context: &Context,
    wiring: &Providers,
) -> Result<ExitCode, CliError> {
    let RunStart {
        mut planned,
        access,
        effort,
        unfinished_runs: beside,
        is_json,
    } = work;
    let settings = context.settings()?;
    let mode = context.view_mode(is_json, &settings);
    let image = access.as_ref().map(|access| access.preset.image.as_str());
    let image = image.map_or(AgentImage::Plain, AgentImage::for_agent);
    image::ensure_image((&mut planned.plan, image), effort, mode, context, wiring).await?;
    let mut joined = wiring
        .set_up_gate(&planned.plan, access, dir.root())
        .await?;
    let prices = joined.unpinned_prices.take();
    let outside = Services {
        outage: settings.model.outage_policy(),
        ..wiring.services(&planned.plan, &planned.choice, &[], joined)?
    };
    planned
        .notices
        .extend(prune::prune_orphans(&planned.plan, wiring).await);
    let journal = create_run::create(dir, planned, beside, wiring).await?;
    pin_prices(prices.as_ref(), dir.root())?;
    Box::pin(drive(dir.clone(), journal, outside, mode)).await
}

/// Shows the plan of a run that its repository's proposals keep from being started, as far as it can be
/// made without them, and refuses it.
async fn show_refused(
    args: &RunArgs,
    (file, task): (PathBuf, TaskFile),
    review: &TrustReview,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let refusal = trust::refusal_error(review, &args.file, &context.layers());
    let planned = async {
        let access = agent::agent_for_run(args, &task.contract, context).await?;
        let wiring = context.providers()?;
        let ways = (context, &wiring);
        let planned = planning::plan_run(args, file, task, access.as_ref(), ways).await?;
        secrets::refuse_in_plan(&planned.plan, &wiring.redactor)?;
        Ok::<PlannedRun, CliError>(planned)
    };
    match planned.await {
        Ok(planned) => show_plan(&planned, review, args.json, context)?,
        Err(_) if args.json => {
            let proposals = json!({"proposals": trust::review_json(review)});
            context.output().print_json(&proposals)?;
        }
        Err(_) => drop(context.output().print_lines(&trust::review_lines(review))?),
    }
    context.output().print_error(&refusal, false);
    Ok(refusal.code)
}

fn show_plan(
    planned: &PlannedRun,
    review: &TrustReview,
    is_json: bool,
    context: &Context,
) -> Result<(), CliError> {
    if is_json {
        // Our own types always serialize.
        let mut plan = serde_json::to_value(&planned.plan).unwrap_or_default();
        plan["proposals"] = trust::review_json(review);
        context.output().print_json(&plan)?;
        return Ok(());
    }
    context
        .output()
        .print_lines(&lifecycle::plan_lines(&planned.plan))?;
    let notices: Vec<StyledLine> = planned
        .notices
        .iter()
        .map(|notice| StyledLine::from_text("note: ").plain(notice))
        .collect();
    context.output().print_lines(&notices)?;
    let proposals = trust::review_lines(review);
    if !proposals.is_empty() {
        context
            .output()
            .print_lines(&[StyledLine::from_text("the repository proposes:")])?;
        context.output().print_lines(&proposals)?;
    }
    Ok(())
}
