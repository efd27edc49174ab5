//! `/runs/{id}/actions`: the actions of a run with their outcomes.

use axum::Json;
use axum::extract::{Path, Query, State};
use ralph_app::results::{Timeline, TimelineRange, timeline};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::problem_responses::ReadProblems;
use crate::context::ServerContext;
use crate::problem::Problem;

/// The number of actions in a response, unless the request has a smaller limit.
const MAX_ACTIONS: usize = 1_000;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new().routes(routes!(actions))
}

/// Which actions to return.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ActionsQuery {
    /// Only the actions of this iteration.
    iteration: Option<u32>,
    /// The `next` of an earlier response.
    after: Option<u64>,
    /// The number of actions; a response has at most 1,000.
    limit: Option<usize>,
}

/// Returns the actions of a model, or the tools of an agent, with their outcomes.
#[utoipa::path(
    get,
    path = "/runs/{id}/actions",
    tag = "iterations",
    params(("id" = String, Path, description = "The id of the run."), ActionsQuery),
    responses((status = 200, body = Timeline), ReadProblems)
)]
async fn actions(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
    Query(query): Query<ActionsQuery>,
) -> Result<Json<Timeline>, Problem> {
    let range = TimelineRange {
        iteration: query.iteration,
        after: query.after.unwrap_or(0),
        limit: query.limit.unwrap_or(MAX_ACTIONS).clamp(1, MAX_ACTIONS),
    };
    let read = context.with_run(id, move |run| async move { Ok(timeline(&run.dir, range)?) });
    Ok(Json(read.await?))
}
