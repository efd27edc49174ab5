//! `/agents` and `/tokens`: the coding agents of a directory, and the credentials of agents and of GitHub.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, State};
use ralph_app::inventory::{self, AgentEntry, CredentialEntry, CredentialTest};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::directory::{DirectoryQuery, app_in};
use crate::app_thread::call_app_within;
use crate::context::ServerContext;
use crate::problem::Problem;

/// The longest request: each program gets some seconds for its version, and a keyring may wait for the user.
const TIMEOUT: Duration = Duration::from_mins(1);

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new()
        .routes(routes!(list_agents))
        .routes(routes!(list_tokens))
        .routes(routes!(check_token))
}

/// The coding agents of a directory.
#[derive(Debug, Serialize, ToSchema)]
struct AgentList {
    agents: Vec<AgentEntry>,
}

/// The states of all credentials.
#[derive(Debug, Serialize, ToSchema)]
struct TokenList {
    tokens: Vec<CredentialEntry>,
}

/// Lists the coding agents with the versions of their programs and the states of their credentials.
#[utoipa::path(
    get,
    path = "/agents",
    tag = "agents",
    params(DirectoryQuery),
    responses(
        (status = 200, body = AgentList),
        (status = 422, body = Problem)
    )
)]
async fn list_agents(
    State(context): State<ServerContext>,
    Query(query): Query<DirectoryQuery>,
) -> Result<Json<AgentList>, Problem> {
    let app = app_in(&context, query.directory.as_deref())?;
    let agents = call_app_within(TIMEOUT, move || async move {
        inventory::list_agents(&app).await
    });
    Ok(Json(AgentList {
        agents: agents.await?,
    }))
}

/// Lists the states of all credentials. No response contains a value.
#[utoipa::path(
    get,
    path = "/tokens",
    tag = "agents",
    params(DirectoryQuery),
    responses(
        (status = 200, body = TokenList),
        (status = 422, body = Problem)
    )
)]
async fn list_tokens(
    State(context): State<ServerContext>,
    Query(query): Query<DirectoryQuery>,
) -> Result<Json<TokenList>, Problem> {
    let app = app_in(&context, query.directory.as_deref())?;
    let tokens = call_app_within(TIMEOUT, move || async move {
        inventory::list_credentials(&app).await
    });
    Ok(Json(TokenList {
        tokens: tokens.await?,
    }))
}

/// Asks the provider of a credential whether it is valid.
#[utoipa::path(
    post,
    path = "/tokens/{agent}/check",
    tag = "agents",
    params(
        ("agent" = String, Path, description = "An agent, or `github`."),
        DirectoryQuery
    ),
    responses(
        (status = 200, body = CredentialTest),
        (status = 422, body = Problem)
    )
)]
async fn check_token(
    State(context): State<ServerContext>,
    Path(agent): Path<String>,
    Query(query): Query<DirectoryQuery>,
) -> Result<Json<CredentialTest>, Problem> {
    let app = app_in(&context, query.directory.as_deref())?;
    let tested = call_app_within(TIMEOUT, move || async move {
        inventory::test_credential(&agent, &app).await
    });
    Ok(Json(tested.await?))
}
