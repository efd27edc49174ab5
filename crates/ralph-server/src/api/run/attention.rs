//! `/runs/{id}/attention`: what a run needs from the user.

use axum::Json;
use axum::extract::{Path, State};
use ralph_app::runs::{AttentionItem, attention};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::problem_responses::ReadProblems;
use crate::context::ServerContext;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new().routes(routes!(needed))
}

/// What a run needs from the user.
#[derive(Debug, Serialize, ToSchema)]
struct AttentionList {
    /// The most urgent first; empty if the run needs nothing.
    items: Vec<AttentionItem>,
}

/// Returns questions, blocked hosts, spent budgets and failures, each with the commands that answer it.
#[utoipa::path(
    get,
    path = "/runs/{id}/attention",
    tag = "runs",
    params(("id" = String, Path, description = "The id of the run.")),
    responses((status = 200, body = AttentionList), ReadProblems)
)]
async fn needed(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
) -> Result<Json<AttentionList>, Problem> {
    let read = context.with_run(id, |run| async move {
        let mut items = attention(&run.dir, &run.state);
        for item in &mut items {
            item.text = run.redacted(item.text.as_bytes());
        }
        Ok(AttentionList { items })
    });
    Ok(Json(read.await?))
}
