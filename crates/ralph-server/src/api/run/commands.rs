//! `/runs/{id}/profile` and `/mode`: change how the next iterations work.

use axum::Json;
use axum::extract::{Path, State};
use ralph_app::steering::require_profile;
use ralph_core::run::Command;
use ralph_core::task::RunMode;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::send::{CommandEffect, require_accepted, send};
use crate::api::problem_responses::CommandProblems;
use crate::context::ServerContext;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new()
        .routes(routes!(set_profile))
        .routes(routes!(set_mode))
}

/// The profile of the next iterations.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct WantedProfile {
    /// The name in `models.yaml`.
    profile: String,
}

/// Switches to the model of another profile, from the next iteration on.
#[utoipa::path(
    put,
    path = "/runs/{id}/profile",
    tag = "steering",
    params(("id" = String, Path, description = "The id of the run.")),
    request_body = WantedProfile,
    responses((status = 200, body = CommandEffect), CommandProblems)
)]
async fn set_profile(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
    Json(wanted): Json<WantedProfile>,
) -> Result<CommandEffect, Problem> {
    let set = context.with_run(id, |run| async move {
        let name = wanted.profile;
        let command = Command::Profile { name: name.clone() };
        require_accepted(&run, &command)?;
        require_profile(run.id().as_str(), &name, &run.app).await?;
        send(&run, command, None).await
    });
    set.await
}

/// The mode of the next iterations.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct WantedMode {
    mode: RunMode,
}

/// Changes how far the user may intervene. Between two iterations it applies immediately.
#[utoipa::path(
    put,
    path = "/runs/{id}/mode",
    tag = "steering",
    params(("id" = String, Path, description = "The id of the run.")),
    request_body = WantedMode,
    responses((status = 200, body = CommandEffect), CommandProblems)
)]
async fn set_mode(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
    Json(wanted): Json<WantedMode>,
) -> Result<CommandEffect, Problem> {
    let command = Command::Mode { mode: wanted.mode };
    let set = context.with_run(id, |run| async move { send(&run, command, None).await });
    set.await
}
