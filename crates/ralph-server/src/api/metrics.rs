//! `/metrics`: the metrics of the server in the text format of Prometheus.

use axum::Extension;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use ralph_app::AppError;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_thread::call_app;
use crate::auth::{AccessScope, Caller};
use crate::context::ServerContext;
use crate::problem::Problem;
use crate::telemetry::exposition;

/// The content type of the text format.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new().routes(routes!(metrics))
}

/// Returns the metrics of the server. It needs the token like every other request.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "server",
    responses((status = 200, description = "Metrics as text.", body = String, content_type = "application/openmetrics-text"))
)]
async fn metrics(
    State(context): State<ServerContext>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    if caller.scope == AccessScope::Read {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "read-only",
            "a share link shows runs only",
        ));
    }
    let text = call_app(move || async move {
        exposition(context.metrics.families())
            .map_err(|error| AppError::runtime("cannot write the metrics", error.to_string(), ""))
    });
    Ok(([(header::CONTENT_TYPE, OPEN_METRICS)], text.await?).into_response())
}
