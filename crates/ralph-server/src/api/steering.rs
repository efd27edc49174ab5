//! `/runs/{id}/pause`, `resume`, `rotate` and `stop`: change how a run continues.

use axum::Json;
use axum::extract::{Path, State};
use ralph_app::steering::{self, SteerReport};
use ralph_core::id::RunId;
use ralph_core::run::Command;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::run::require_accepted;
use crate::context::ServerContext;
use crate::problem::Problem;
use crate::supervisor::Continuation;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new()
        .routes(routes!(pause))
        .routes(routes!(resume))
        .routes(routes!(rotate))
        .routes(routes!(stop))
}

/// The effect of an accepted command.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SteerEffect {
    #[schema(value_type = String)]
    run: RunId,
    /// The effect in one sentence.
    effect: String,
    /// The position of the run among those that wait for a worker, from 1; null if it does not wait.
    queue_position: Option<usize>,
}

impl SteerEffect {
    /// Describes how a run continues.
    pub(super) fn of_continuation(continuation: Continuation, context: &ServerContext) -> Self {
        match continuation {
            Continuation::Started(run) => {
                let queue_position = context.supervisor.queue_position(&run);
                let effect = "the server works on it".to_owned();
                Self {
                    run,
                    effect,
                    queue_position,
                }
            }
            Continuation::Sent(report) => Self::of_report(report, context),
        }
    }

    fn of_report(report: SteerReport, context: &ServerContext) -> Self {
        Self {
            queue_position: context.supervisor.queue_position(&report.run),
            run: report.run,
            effect: report.effect,
        }
    }
}

/// Pauses a run at its next action.
#[utoipa::path(
    post,
    path = "/runs/{id}/pause",
    tag = "steering",
    params(("id" = String, Path, description = "The id of a run.")),
    responses(
        (status = 200, body = SteerEffect),
        (status = 404, body = Problem, description = "There is no such run."),
        (status = 409, body = Problem, description = "The status of the run does not allow it."),
    )
)]
async fn pause(
    context: State<ServerContext>,
    id: Path<String>,
) -> Result<Json<SteerEffect>, Problem> {
    steer(context, id, Command::Pause).await
}

/// Continues a run. A run that no process works on joins the queue of the server.
#[utoipa::path(
    post,
    path = "/runs/{id}/resume",
    tag = "steering",
    params(("id" = String, Path, description = "The id of a run.")),
    responses(
        (status = 200, body = SteerEffect),
        (status = 404, body = Problem, description = "There is no such run."),
        (status = 409, body = Problem, description = "The status of the run does not allow it."),
    )
)]
async fn resume(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
) -> Result<Json<SteerEffect>, Problem> {
    let run = context.with_run(id, |run| async move {
        require_accepted(&run, &Command::Resume)?;
        Ok(run.id().clone())
    });
    let continuation = context.supervisor.resume(&run.await?).await?;
    Ok(Json(SteerEffect::of_continuation(continuation, &context)))
}

/// Cancels a model call in progress, or else ends the iteration at the next action; then starts a fresh
/// iteration.
#[utoipa::path(
    post,
    path = "/runs/{id}/rotate",
    tag = "steering",
    params(("id" = String, Path, description = "The id of a run.")),
    responses(
        (status = 200, body = SteerEffect),
        (status = 404, body = Problem, description = "There is no such run."),
        (status = 409, body = Problem, description = "The status of the run does not allow it."),
    )
)]
async fn rotate(
    context: State<ServerContext>,
    id: Path<String>,
) -> Result<Json<SteerEffect>, Problem> {
    steer(context, id, Command::Rotate).await
}

/// Ends a run; its sandbox is kept for inspection.
#[utoipa::path(
    post,
    path = "/runs/{id}/stop",
    tag = "steering",
    params(("id" = String, Path, description = "The id of a run.")),
    responses(
        (status = 200, body = SteerEffect),
        (status = 404, body = Problem, description = "There is no such run."),
        (status = 409, body = Problem, description = "The status of the run does not allow it."),
    )
)]
async fn stop(
    context: State<ServerContext>,
    id: Path<String>,
) -> Result<Json<SteerEffect>, Problem> {
    steer(context, id, Command::Stop).await
}

async fn steer(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
    command: Command,
) -> Result<Json<SteerEffect>, Problem> {
    let sent = context.with_run(id, move |run| async move {
        require_accepted(&run, &command)?;
        let sent = steering::steer(run.id().as_str(), &command, &run.app);
        Ok(Box::pin(sent).await?)
    });
    Ok(Json(SteerEffect::of_report(sent.await?, &context)))
}
