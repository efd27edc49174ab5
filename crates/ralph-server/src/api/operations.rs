//! `/operations`: the progress of long operations.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::context::ServerContext;
use crate::operations::Operation;
use crate::problem::Problem;

/// The longest wait of a request.
const MAX_WAIT: u64 = 60;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(operation, cancel))
}

/// The operations of this process.
#[derive(Debug, Serialize, ToSchema)]
struct OperationList {
    /// Newest first.
    operations: Vec<Operation>,
}

/// How long to wait.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct WaitQuery {
    /// Waits up to this many seconds for the end of the operation.
    #[param(maximum = 60)]
    wait: Option<u64>,
}

/// Lists the operations since the start of the server; old ones are forgotten.
#[utoipa::path(
    get,
    path = "/operations",
    tag = "machine",
    responses((status = 200, body = OperationList))
)]
async fn list(State(context): State<ServerContext>) -> Json<OperationList> {
    Json(OperationList {
        operations: context.operations.list(),
    })
}

/// Returns the progress of an operation.
#[utoipa::path(
    get,
    path = "/operations/{id}",
    tag = "machine",
    params(("id" = String, Path), WaitQuery),
    responses(
        (status = 200, body = Operation),
        (status = 404, body = Problem),
        (status = 422, body = Problem)
    )
)]
async fn operation(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
    Query(query): Query<WaitQuery>,
) -> Result<Json<Operation>, Problem> {
    let wait = query.wait.unwrap_or_default();
    if wait > MAX_WAIT {
        return Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid-wait",
            format!("cannot wait {wait} seconds — the most is {MAX_WAIT}"),
        ));
    }
    let found = context.operations.wait(&id, Duration::from_secs(wait));
    Ok(Json(found.await.ok_or_else(|| no_operation(&id))?))
}

/// Cancels an operation. One that has ended stays as it is.
#[utoipa::path(
    delete,
    path = "/operations/{id}",
    tag = "machine",
    params(("id" = String, Path)),
    responses(
        (status = 202, body = Operation),
        (status = 404, body = Problem)
    )
)]
async fn cancel(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<Operation>), Problem> {
    context.operations.cancel(&id);
    let operation = context.operations.get(&id);
    let operation = operation.ok_or_else(|| no_operation(&id))?;
    Ok((StatusCode::ACCEPTED, Json(operation)))
}

fn no_operation(id: &str) -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "not-found",
        format!("there is no operation `{id}`"),
    )
    .with_hint("list them with `/operations`; a restart of the server forgets them")
}
