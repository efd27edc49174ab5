//! `/runs/{id}`: describes and removes a run.

use axum::Json;
use axum::extract::{Path, Query, State};
use ralph_app::runs::{RemovalGuard, RemovedRun, RunDetails, remove_run};
use ralph_app::steering::{CommandAvailability, available_commands};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::problem_responses::ReadProblems;
use crate::context::ServerContext;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new().routes(routes!(show, remove))
}

/// A run with the commands that it accepts.
#[derive(Debug, Serialize, ToSchema)]
struct ShownRun {
    #[serde(flatten)]
    details: RunDetails,
    /// The position among the runs that wait for a worker, from 1; null if it does not wait.
    queue_position: Option<usize>,
    /// Every command, with the reason if the run does not accept it now.
    commands: Vec<CommandAvailability>,
}

/// Describes a run.
#[utoipa::path(
    get,
    path = "/runs/{id}",
    tag = "runs",
    params(("id" = String, Path, description = "The id of the run.")),
    responses((status = 200, body = ShownRun), ReadProblems)
)]
async fn show(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
) -> Result<Json<ShownRun>, Problem> {
    let supervisor = context.supervisor.clone();
    let shown = context.with_run(id, move |run| async move {
        Ok(ShownRun {
            details: RunDetails::from_state(&run.dir, &run.state),
            queue_position: supervisor.queue_position(run.id()),
            commands: available_commands(&run.dir, &run.state),
        })
    });
    Ok(Json(shown.await?))
}

/// How a run is removed.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct RemoveQuery {
    /// Whether to remove a run that is unfinished or has commits that were not delivered.
    #[serde(default)]
    force: bool,
}

/// Removes the directory and the sandboxes of a run that no process works on.
#[utoipa::path(
    delete,
    path = "/runs/{id}",
    tag = "runs",
    params(("id" = String, Path, description = "The id of the run."), RemoveQuery),
    responses((status = 200, body = RemovedRun), ReadProblems)
)]
async fn remove(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
    Query(query): Query<RemoveQuery>,
) -> Result<Json<RemovedRun>, Problem> {
    // Also removes a run whose journal cannot be read.
    context.run_dir(&id)?;
    let guard = if query.force {
        RemovalGuard::Force
    } else {
        RemovalGuard::FinishedOnly
    };
    let removed = context.call_app(move |app| async move { remove_run(&id, guard, &app).await });
    let removed = removed.await?;
    // The next list must not contain the run.
    context.index.refresh().await;
    Ok(Json(removed))
}
