//! `/runs/{id}/diff`: the changes of a run, of an iteration, or that are not committed.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use ralph_app::results::{
    WorkspacePatch, WorkspaceSource, iteration_diff, open_workspace, run_diff,
};
use ralph_engine::inspect::MAX_DIFF_BYTES;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::problem_responses::ReadProblems;
use crate::context::ServerContext;
use crate::problem::Problem;
use crate::run_access::RunAccess;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new().routes(routes!(diff))
}

/// Which changes to return.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct DiffQuery {
    /// The changed files; `base` without it.
    #[serde(default)]
    #[param(inline)]
    of: DiffRange,
    /// The changes of this iteration instead, committed or not.
    iteration: Option<u32>,
}

/// The two states that a diff compares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum DiffRange {
    /// From the base commit to the last commit on the host.
    #[default]
    Base,
    /// From the base commit to the files in the sandbox.
    Workspace,
    /// From the last commit on the host to the files in the sandbox.
    Uncommitted,
}

/// Returns changes as a patch of at most 4 MiB.
#[utoipa::path(
    get,
    path = "/runs/{id}/diff",
    tag = "workspace",
    params(("id" = String, Path, description = "The id of the run."), DiffQuery),
    responses((status = 200, body = WorkspacePatch), ReadProblems)
)]
async fn diff(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
    Query(query): Query<DiffQuery>,
) -> Result<Json<WorkspacePatch>, Problem> {
    let read = context.with_run(id, move |run| async move {
        let (source, bytes, cut) = read_diff(&run, &query).await?;
        let mut patch = run.redacted(&bytes);
        let end = patch.floor_char_boundary(MAX_DIFF_BYTES);
        let cut = cut || end < patch.len();
        patch.truncate(end);
        Ok(WorkspacePatch { source, patch, cut })
    });
    Ok(Json(read.await?))
}

async fn read_diff(
    run: &RunAccess,
    query: &DiffQuery,
) -> Result<(WorkspaceSource, Vec<u8>, bool), Problem> {
    if let Some(number) = query.iteration {
        if query.of != DiffRange::Base {
            let detail = "`of` and `iteration` exclude each other";
            return Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "invalid-query",
                detail,
            ));
        }
        run.require_iteration(number)?;
        let patch = iteration_diff(&run.dir, &run.state, number)?;
        return Ok((WorkspaceSource::Sandbox, patch, false));
    }
    let from = match query.of {
        DiffRange::Base => {
            let patch = run_diff(&run.dir, &run.state, &run.app).await?;
            return Ok((WorkspaceSource::Commit, patch, false));
        }
        DiffRange::Workspace => &run.state.plan.base,
        DiffRange::Uncommitted => &run.state.head,
    };
    let workspace = open_workspace(&run.dir, &run.state, &run.app).await?;
    let (patch, cut) = workspace.diff(from).await?;
    Ok((workspace.source(), patch, cut))
}
