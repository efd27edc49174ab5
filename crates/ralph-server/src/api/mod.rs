//! The REST interface. A file per resource parses requests and calls the application layer.

mod agents;
mod checks;
mod config;
mod cost;
mod directory;
mod disk;
mod fleet;
mod health;
mod images;
mod issues;
mod lint;
mod logs;
mod machine;
mod measurements;
mod metrics;
mod models;
mod openapi_document;
mod operations;
mod orphans;
mod problem_responses;
mod queue;
mod repositories;
mod run;
mod run_request;
mod runs;
mod sandboxes;
mod scm;
mod session;
mod shares;
mod start_run;
mod steering;
mod streams;

use axum::Router;
use utoipa_axum::router::OpenApiRouter;

use crate::context::ServerContext;

#[cfg(test)]
pub(crate) use logs::routes as log_routes;
#[cfg(test)]
pub(crate) use streams::routes as stream_routes;

fn documented_routes() -> OpenApiRouter<ServerContext> {
    let resources = OpenApiRouter::new()
        .merge(measurements::routes())
        .merge(openapi_document::routes())
        .merge(queue::routes())
        .merge(logs::routes())
        .merge(runs::routes())
        .merge(machine::routes())
        .merge(run::routes())
        .merge(session::routes())
        .merge(shares::routes())
        .merge(start_run::routes())
        .merge(steering::routes())
        .merge(streams::routes());
    OpenApiRouter::with_openapi(openapi_document::base())
        .merge(health::routes())
        .merge(metrics::routes())
        .nest("/api/v1", resources)
}

/// Returns the routes of the interface.
pub(crate) fn routes() -> Router<ServerContext> {
    let (router, _description) = documented_routes().split_for_parts();
    router
}

/// Returns the description of the interface, generated from its code.
pub fn openapi() -> utoipa::openapi::OpenApi {
    openapi_document::complete(documented_routes().into_openapi())
}
