//! `ralph resume`: goes on with a run that waits or was interrupted.

use ralph_core::event::RunEvent;
use ralph_core::plan::RunPlan;
use ralph_core::ports::SandboxProvider;
use ralph_core::run::{self, Command};
use ralph_engine::journal::Journal;
use ralph_engine::run::Services;

use super::agent;
use super::args::{ResumeArgs, RunArg};
use super::context::Context;
use super::drive::drive;
use super::error::CliError;
use super::exit::ExitCode;
use super::prune;
use super::run_owner;
use super::secrets;
use super::steer;
use crate::providers::gate_setup::pin_prices;

/// Tells a waiting process to go on, or takes the run over.
pub(super) async fn run(args: ResumeArgs, context: &Context) -> Result<ExitCode, CliError> {
    Box::pin(resume(&args.run, args.json, context)).await
}

/// Tells a waiting process to go on, or takes the run over.
pub(super) async fn resume(
    run: &RunArg,
    is_json: bool,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let dir = context.find_run(run)?;
    let state = dir.state()?;
    if dir.is_held() {
        if state.status.is_active() {
            let why = format!("it is not paused; {}", run_owner::describe_owner(&state));
            return Err(steer::refused_error(&state, &Command::Resume, &why));
        }
        return steer::run(run, &Command::Resume, context);
    }
    let access = match state.plan.agent {
        Some(plan) => Some(agent::access_for_plan(&plan, context).await?),
        None => None,
    };
    let wiring = context.providers()?;
    let mut journal = Journal::open(&dir, wiring.clock.clone(), wiring.redactor.clone())?;
    let state = journal.state();
    // A run whose process died says it is active; nobody works on it, so it can be continued.
    if !state.status.is_active() {
        run::legal(&state.status, state.mode, &Command::Resume).map_err(|why| {
            CliError::runtime(
                format!("cannot resume run `{}`", state.plan.run),
                why,
                "start the task again with `ralph run`",
            )
        })?;
    }
    secrets::refuse_redacted_plan(&state.plan)?;
    let settings = context.settings()?;
    let mode = context.view_mode(is_json, &settings);
    let joined = wiring.set_up_gate(&state.plan, access, dir.root()).await?;
    pin_prices(joined.unpinned_prices.as_ref(), dir.root())?;
    let outside = Services {
        outage: settings.model.outage_policy(),
        ..wiring.services(
            &state.plan,
            &state.model_choice(),
            &state.used_script_lines,
            joined,
        )?
    };
    let weaker = changed_confinement(&state.plan, &*outside.sandboxes);
    let notices = prune::prune_orphans(&state.plan, &wiring).await;
    for message in notices.into_iter().chain(weaker) {
        journal.append(RunEvent::Notice { message })?;
    }
    Box::pin(drive(dir, journal, outside, mode)).await
}

/// Reports what is kept from commands, if that is not what the run was planned with: another machine, or
/// another configuration of this one.
fn changed_confinement(plan: &RunPlan, sandboxes: &dyn SandboxProvider) -> Option<String> {
    let planned = plan.local?.confinement;
    let now = sandboxes.confinement()?;
    (now != planned).then(|| {
        let (walls, limits) = (now.describe_isolation(), now.describe_limits());
        format!("the confinement of local commands has changed: {walls} · {limits}")
    })
}
