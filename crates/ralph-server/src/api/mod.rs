//! The REST interface. A file per resource parses requests and calls the application layer.

mod health;
mod runs;

use axum::Router;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::context::ServerContext;

/// The description of the interface without its paths, which the routers add.
#[derive(OpenApi)]
#[openapi(info(
    title = "ralph",
    description = "Runs of ralph: start, watch, steer and inspect them."
))]
struct ApiDescription;

fn documented_routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::with_openapi(ApiDescription::openapi())
        .merge(health::routes())
        .nest("/api/v1", runs::routes())
}

/// Returns the routes of the interface.
pub(crate) fn routes() -> Router<ServerContext> {
    let (router, _description) = documented_routes().split_for_parts();
    router
}

/// Returns the description of the interface, generated from its code.
pub fn openapi() -> utoipa::openapi::OpenApi {
    documented_routes().into_openapi()
}
