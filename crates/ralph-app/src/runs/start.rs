//! Prepares the image, the gate and the journal of a planned run.

use std::path::PathBuf;

use ralph_core::id::RunId;
use ralph_core::image::{AgentImage, ImageEffort};
use ralph_core::task::TaskFile;
use ralph_engine::store::RunDir;

use super::create_run::{self, UnfinishedRunPolicy};
use super::measured_run;
use super::notify::Notifier;
use super::ready_run::ReadyRun;
use crate::app::App;
use crate::checks::{StartFindings, check_start};
use crate::error::{AppError, ErrorKind};
use crate::image::{self, ImageProgressSink};
use crate::planning::{self, PlanPurpose, PlannedRun, RunRequest, SourceRepository};
use crate::providers::Providers;
use crate::providers::gate_setup::pin_prices;
use crate::prune;
use crate::scm;

/// A planned run to start.
pub struct RunStart {
    pub planned: PlannedRun,
    /// Whether existing images are reused.
    pub effort: ImageEffort,
    /// Whether the task may have another unfinished run.
    pub unfinished_runs: UnfinishedRunPolicy,
    /// Is called with the id of the run before its journal is created.
    pub on_reserved: Option<Box<OnReserved>>,
}

/// Receives the id of a run that is about to be created; an error prevents the creation.
pub type OnReserved = dyn FnOnce(&RunId) -> Result<(), AppError> + Send;

/// Checks that a run can start, and completes its plan. Returns all reasons if it cannot.
pub async fn plan_start(
    request: &RunRequest,
    task: (PathBuf, TaskFile),
    app: &App,
) -> Result<PlannedRun, AppError> {
    let StartFindings { errors, notices } = Box::pin(check_start(request, app)).await;
    if !errors.is_empty() {
        let plan_error = Box::pin(plan_error(request, task.clone(), app)).await;
        let others = plan_error.filter(|error| !errors.contains(error));
        if let Some(error) = AppError::combine(errors.into_iter().chain(others)) {
            return Err(error);
        }
    }
    let mut planned = planning::plan_run(request, task, app, PlanPurpose::Start).await?;
    planned.notices.extend(notices);
    Ok(planned)
}

/// Returns the error of a plan whose checks failed already. Sends no requests to a source host.
async fn plan_error(
    request: &RunRequest,
    task: (PathBuf, TaskFile),
    app: &App,
) -> Option<AppError> {
    if SourceRepository::is_remote(request, &task.1) {
        return None;
    }
    let planned = planning::plan_run(request, task, app, PlanPurpose::Preview).await;
    planned.err()
}

/// A plan that is only shown, and everything that prevents its start.
pub struct PlanPreview {
    /// `None` if the repository is on a source host and cannot be read, so that the base is unknown.
    pub planned: Option<PlannedRun>,
    /// The errors that the start would return.
    pub missing: Vec<AppError>,
}

/// Completes the plan of a run that does not start. A missing key, login or container engine, and a
/// repository on a source host that cannot be used, are reported with the plan; a task that the linter
/// rejects, or a repository on this machine that cannot be read, is an error.
pub async fn preview_start(
    request: &RunRequest,
    task: (PathBuf, TaskFile),
    app: &App,
) -> Result<PlanPreview, AppError> {
    let StartFindings { errors, notices } = Box::pin(check_start(request, app)).await;
    let is_remote = SourceRepository::is_remote(request, &task.1);
    let mut missing = errors;
    let planned = match planning::plan_run(request, task, app, PlanPurpose::Preview).await {
        Ok(mut planned) => {
            planned.notices.extend(notices);
            Some(planned)
        }
        Err(error) if is_remote && error.kind == ErrorKind::Runtime => {
            if !missing.contains(&error) {
                missing.push(error);
            }
            None
        }
        Err(error) => {
            let others = missing.into_iter().filter(|other| *other != error);
            let all = [error.clone()].into_iter().chain(others);
            return Err(AppError::combine(all).unwrap_or(error));
        }
    };
    Ok(PlanPreview { planned, missing })
}

/// Reserves an id, builds a missing image, opens the gate and creates the journal. `progress`
/// receives the progress of the image. A failure releases the reserved id.
pub async fn prepare_start(
    mut start: RunStart,
    app: &App,
    progress: ImageProgressSink<'_>,
) -> Result<ReadyRun, AppError> {
    let providers = &app.providers()?;
    create_run::reserve(&mut start.planned.plan, providers)?;
    let dir = providers.state.run(&start.planned.plan.run);
    let prepared = Box::pin(prepare_in(&dir, start, (app, providers), progress)).await;
    if prepared.is_err() {
        dir.release();
    }
    prepared
}

async fn prepare_in(
    dir: &RunDir,
    start: RunStart,
    (app, providers): (&App, &Providers),
    progress: ImageProgressSink<'_>,
) -> Result<ReadyRun, AppError> {
    let RunStart {
        mut planned,
        effort,
        unfinished_runs,
        on_reserved,
    } = start;
    let access = planned.access.take();
    let image = access.as_ref().map(|access| access.preset.image.as_str());
    let image = image.map_or(AgentImage::Plain, AgentImage::for_agent);
    image::ensure_image(
        (&mut planned.plan, image),
        effort,
        progress,
        (app, providers),
    )
    .await?;
    scm::connect_for_plan(&planned.plan, app).await?;
    let mut gate_setup = providers
        .set_up_gate(&planned.plan, access, dir.root())
        .await?;
    let prices = gate_setup.unpinned_prices.take();
    let services = providers.services(&planned.plan, &planned.choice, gate_setup)?;
    planned
        .notices
        .extend(prune::prune_orphans(&planned.plan, providers).await);
    if let Some(on_reserved) = on_reserved {
        on_reserved(&planned.plan.run)?;
    }
    let journal = create_run::create(dir, planned, unfinished_runs, providers).await?;
    pin_prices(prices.as_ref(), dir.root())?;
    Ok(ReadyRun {
        dir: dir.clone(),
        journal,
        services,
        observer: None,
        telemetry: measured_run::telemetry(app),
        notifier: Notifier::new(app, providers.models.network()),
    })
}
