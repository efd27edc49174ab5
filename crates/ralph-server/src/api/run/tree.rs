//! `/runs/{id}/tree`: the files of the workspace.

use axum::Json;
use axum::extract::{Path, State};
use ralph_app::results::{WorkspaceListing, open_workspace};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::problem_responses::ReadProblems;
use crate::context::ServerContext;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new().routes(routes!(tree))
}

/// Lists the files of the workspace, with at most 20,000 entries.
#[utoipa::path(
    get,
    path = "/runs/{id}/tree",
    tag = "workspace",
    params(("id" = String, Path, description = "The id of the run.")),
    responses((status = 200, body = WorkspaceListing), ReadProblems)
)]
async fn tree(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
) -> Result<Json<WorkspaceListing>, Problem> {
    let listed = context.with_run(id, |run| async move {
        let workspace = open_workspace(&run.dir, &run.state, &run.app).await?;
        let mut listing = workspace.listing().await?;
        for entry in &mut listing.entries {
            // A command can use a secret as the name of a file.
            entry.path = run.redacted(entry.path.as_bytes());
        }
        Ok(listing)
    });
    Ok(Json(listed.await?))
}
