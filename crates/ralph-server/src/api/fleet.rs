//! `/fleet`: all unfinished runs of all repositories, and what lost runs left behind.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use ralph_app::runs::{OrphanedRuns, RunActivity};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::orphans::OrphanEntry;
use crate::app_thread::call_app_within;
use crate::context::ServerContext;
use crate::problem::Problem;

/// The longest request: a Docker Engine that does not answer takes ten seconds.
const TIMEOUT: Duration = Duration::from_mins(1);

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new().routes(routes!(fleet))
}

/// All unfinished runs of this machine.
#[derive(Debug, Serialize, ToSchema)]
struct FleetReport {
    /// Newest first.
    runs: Vec<FleetRun>,
    /// The runs whose directory is gone.
    orphans: Vec<OrphanEntry>,
    /// Why the containers could not be listed.
    docker_problem: Option<String>,
    /// The number of runs whose journals cannot be read.
    unreadable: usize,
    workers: usize,
}

/// An unfinished run.
#[derive(Debug, Serialize, ToSchema)]
struct FleetRun {
    #[serde(flatten)]
    activity: RunActivity,
    /// The process that works on it, if one does.
    owner: Option<FleetOwner>,
    /// The place in the queue of this server, counted from 1.
    queue_position: Option<usize>,
    /// Whether it waits for the user.
    needs_you: bool,
}

/// The process that works on a run.
#[derive(Debug, Serialize, ToSchema)]
struct FleetOwner {
    pid: u32,
    /// Whether it is this server.
    this_server: bool,
}

/// Lists all unfinished runs with their owners and activities, and the orphaned ones.
#[utoipa::path(
    get,
    path = "/fleet",
    tag = "machine",
    responses((status = 200, body = FleetReport))
)]
async fn fleet(State(context): State<ServerContext>) -> Result<Json<FleetReport>, Problem> {
    let report = call_app_within(TIMEOUT, move || async move {
        let state = context.app.state_dir()?;
        let queue = context.supervisor.queue();
        let now = context.app.clock().now();
        let (activities, unreadable) = {
            let mut followed = context.fleet.lock();
            let activities = followed.read(&state, now)?;
            (activities, followed.unreadable())
        };
        let runs = activities.into_iter().map(|activity| {
            let id = &activity.summary.id;
            let position = queue.queued.iter().position(|waiting| waiting == id);
            let this_server = queue.working.contains(id);
            let owner = activity
                .owner_pid
                .map(|pid| FleetOwner { pid, this_server });
            FleetRun {
                queue_position: position.map(|position| position + 1),
                needs_you: activity.needs_user,
                owner,
                activity,
            }
        });
        let runs = runs.collect();
        let orphans = OrphanedRuns::find(&context.app).await?;
        Ok(FleetReport {
            runs,
            orphans: orphans.listed().map(OrphanEntry::new).collect(),
            docker_problem: orphans.docker_problem().map(str::to_owned),
            unreadable,
            workers: queue.workers,
        })
    });
    Ok(Json(report.await?))
}
