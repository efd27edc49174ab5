//! `/runs`: lists, starts and describes runs.

use std::path::PathBuf;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use ralph_app::planning::RunRequest;
use ralph_app::runs::{RunDetails, UnfinishedRunPolicy};
use ralph_core::image::ImageEffort;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_thread::call_app;
use crate::context::ServerContext;
use crate::index::RunFilter;
use crate::problem::Problem;
use crate::supervisor::{GivenAnswers, StartRequest};

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new()
        .routes(routes!(list, start))
        .routes(routes!(run))
}

/// Which part of the list to return.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// The `next` of an earlier page.
    cursor: Option<String>,
    /// The number of runs, at most 200.
    limit: Option<usize>,
}

/// A part of the list of runs.
#[derive(Debug, Serialize, ToSchema)]
struct RunList {
    /// Newest first.
    runs: Vec<Value>,
    /// Continues the list; null at its end.
    next: Option<String>,
}

/// Lists runs, newest first.
#[utoipa::path(
    get,
    path = "/runs",
    tag = "runs",
    params(ListQuery),
    responses((status = 200, body = RunList))
)]
async fn list(
    State(context): State<ServerContext>,
    Query(query): Query<ListQuery>,
) -> Result<Json<RunList>, Problem> {
    let limit = query.limit.unwrap_or(50).clamp(1, 200);
    let filter = RunFilter::default();
    let page = context.index.list(&filter, query.cursor.as_deref(), limit);
    let page = page.await?;
    Ok(Json(RunList {
        runs: page.runs,
        next: page.next,
    }))
}

/// A new run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewRun {
    /// The directory whose configuration counts, and to which `file` is relative.
    #[schema(value_type = String)]
    directory: PathBuf,
    /// The task file.
    #[schema(value_type = String)]
    file: PathBuf,
    /// The model instead of the task's, such as `scripted:replies.jsonl`.
    model: Option<String>,
    /// The sandbox provider instead of the task's.
    sandbox: Option<String>,
}

/// Starts a run.
#[utoipa::path(
    post,
    path = "/runs",
    tag = "runs",
    request_body = NewRun,
    responses((status = 201, body = Value), (status = 422, body = Problem))
)]
async fn start(
    State(context): State<ServerContext>,
    Json(new): Json<NewRun>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let start = StartRequest {
        directory: new.directory,
        request: RunRequest {
            model: new.model,
            sandbox: new.sandbox,
            ..RunRequest::for_file(new.file)
        },
        effort: ImageEffort::Reuse,
        unfinished_runs: UnfinishedRunPolicy::Refuse,
        answers: GivenAnswers::default(),
    };
    let run = context.supervisor.start(start).await?;
    Ok((StatusCode::CREATED, Json(json!({ "id": run }))))
}

/// Describes a run.
#[utoipa::path(
    get,
    path = "/runs/{id}",
    tag = "runs",
    params(("id" = String, Path, description = "An id, a unique prefix, a task id, or `last`.")),
    responses((status = 200, body = Value), (status = 404, body = Problem))
)]
async fn run(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let details = call_app(move || async move {
        let dir = context.app.find_run(&id)?;
        let state = dir.state()?;
        Ok(RunDetails::from_state(&dir, &state))
    });
    let details = details.await?;
    let json = serde_json::to_value(&details).map_err(|error| {
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "failed",
            error.to_string(),
        )
    })?;
    Ok(Json(json))
}
