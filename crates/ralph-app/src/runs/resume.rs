//! Prepares a run that waits or was interrupted.

use ralph_core::event::RunEvent;
use ralph_core::plan::RunPlan;
use ralph_core::ports::SandboxProvider;
use ralph_core::run::{self, Command};
use ralph_core::state::RunState;
use ralph_engine::journal::Journal;

use super::measured_run;
use super::notify::Notifier;
use super::ready_run::ReadyRun;
use crate::app::App;
use crate::error::AppError;
use crate::planning::{pinned_settings, secrets, worker};
use crate::providers::gate_setup::pin_prices;
use crate::prune;
use crate::scm;
use crate::steering::{self, SteerReport};

/// The result of a request to resume a run.
pub enum ResumeOutcome {
    /// The process that works on the run continues it.
    Sent(SteerReport),
    /// No process works on the run; the caller can drive it.
    Ready(Box<ReadyRun>),
}

/// Sends `resume` to the process of a waiting run, or opens a run that no process works on.
pub async fn prepare_resume(query: &str, app: &App) -> Result<ResumeOutcome, AppError> {
    let dir = app.find_run(query)?;
    let state = dir.state()?;
    if state.discarded {
        return Err(discarded_error(&state));
    }
    if dir.is_held() {
        if state.status.is_active() {
            let why = format!("it is not paused; {}", steering::describe_owner(&state));
            return Err(steering::refused_error(&state, &Command::Resume, &why));
        }
        let sent = steering::steer(query, &Command::Resume, app).await?;
        return Ok(ResumeOutcome::Sent(sent));
    }
    let (plan, app) = pinned_settings::for_existing_run(&state.plan, app)?;
    let access = match &plan.agent {
        Some(plan) => Some(worker::access_for_plan(plan, &app).await?),
        None => None,
    };
    app.load_model_keys().await?;
    scm::connect_for_plan(&plan, &app).await?;
    let providers = app.providers()?;
    let mut journal = Journal::open(&dir, providers.clock.clone(), providers.redactor.clone())?;
    let state = journal.state();
    // A run whose process died still has an active status. Without a process, it can be continued.
    if !state.status.is_active() && !state.may_continue {
        run::legal(&state.status, state.mode, &Command::Resume).map_err(|why| {
            AppError::refused(
                format!("cannot resume run `{}`", state.plan.run),
                why,
                "start the task again with `ralph run`",
            )
        })?;
    }
    secrets::refuse_redacted_plan(&plan)?;
    let gate_setup = providers.set_up_gate(&plan, access, dir.root()).await?;
    pin_prices(gate_setup.unpinned_prices.as_ref(), dir.root())?;
    let services = providers.services_for_existing((&plan, state), gate_setup)?;
    let confinement_notice = changed_confinement(&plan, &*services.sandboxes);
    let notices = prune::prune_orphans(&plan, &providers).await;
    for message in notices.into_iter().chain(confinement_notice) {
        journal.append(RunEvent::Notice { message })?;
    }
    Ok(ResumeOutcome::Ready(Box::new(ReadyRun {
        dir,
        journal,
        services,
        observer: None,
        telemetry: measured_run::telemetry(&app),
        notifier: Notifier::new(&app, providers.models.network()),
    })))
}

/// Returns the error of an operation that needs the branch of a discarded run.
pub(super) fn discarded_error(state: &RunState) -> AppError {
    AppError::refused(
        format!("cannot continue run `{}`", state.plan.run),
        "it was discarded",
        "start the task again with `ralph run`",
    )
}

/// Reports the confinement of commands if it differs from the plan, because of another machine or
/// another configuration of this one.
fn changed_confinement(plan: &RunPlan, sandboxes: &dyn SandboxProvider) -> Option<String> {
    let planned = plan.local?.confinement;
    let now = sandboxes.confinement()?;
    (now != planned).then(|| {
        let (isolation, limits) = (now.describe_isolation(), now.describe_limits());
        format!("the confinement of local commands has changed: {isolation} · {limits}")
    })
}
