//! `/preflight` and `/selftest`: checks of a task, and of a sandbox provider with a real sandbox.

use std::path::PathBuf;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use ralph_app::checks::{SelftestRequest, run_preflight, run_selftest};
use ralph_app::planning::{RunRequest, TASK_FILE};
use ralph_app::providers::LocalOrDocker;
use ralph_core::plan::EngineKind;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::directory::app_in;
use crate::context::ServerContext;
use crate::operations::{Operation, OperationKind, until_cancelled};
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new()
        .routes(routes!(preflight))
        .routes(routes!(selftest))
}

/// A run to check before it starts.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PreflightRequest {
    /// An absolute path; the default is the directory that the server was started in.
    directory: Option<String>,
    /// The task file, relative to the directory; the default is `ralph_task.md`, if it exists.
    file: Option<String>,
    /// The repository instead of the task's.
    repo: Option<String>,
    sandbox: Option<String>,
    engine: Option<EngineChoice>,
    agent: Option<String>,
    profile: Option<String>,
    model: Option<String>,
}

/// An engine of runs.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum EngineChoice {
    Actions,
    Agent,
}

impl From<EngineChoice> for EngineKind {
    fn from(engine: EngineChoice) -> Self {
        match engine {
            EngineChoice::Actions => Self::Actions,
            EngineChoice::Agent => Self::Agent,
        }
    }
}

/// A sandbox provider to test.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SelftestStart {
    #[serde(rename = "type")]
    provider: TestedProvider,
    /// The agent that logs in; the default is `claude`.
    agent: Option<String>,
    /// Whether no token and no network are used: a local replacement for the agent's provider answers.
    #[serde(default)]
    offline: bool,
    /// An absolute path; the default is the directory that the server was started in.
    directory: Option<String>,
}

/// A sandbox provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum TestedProvider {
    Local,
    Docker,
}

impl From<TestedProvider> for LocalOrDocker {
    fn from(provider: TestedProvider) -> Self {
        match provider {
            TestedProvider::Local => Self::Local,
            TestedProvider::Docker => Self::Docker,
        }
    }
}

/// Starts to check everything that a run needs, without changing anything. The operation has a check for each.
#[utoipa::path(
    post,
    path = "/preflight",
    tag = "machine",
    request_body = PreflightRequest,
    responses(
        (status = 202, body = Operation),
        (status = 422, body = Problem),
        (status = 429, body = Problem)
    )
)]
async fn preflight(
    State(context): State<ServerContext>,
    Json(asked): Json<PreflightRequest>,
) -> Result<(StatusCode, Json<Operation>), Problem> {
    let app = app_in(&context, asked.directory.as_deref())?;
    let request = RunRequest {
        repo: asked.repo,
        sandbox: asked.sandbox,
        engine: asked.engine.map(EngineKind::from),
        agent: asked.agent,
        profile: asked.profile,
        model: asked.model,
        ..RunRequest::for_file(TASK_FILE)
    };
    let file = asked.file.map(PathBuf::from);
    let started =
        context
            .operations
            .start(OperationKind::Preflight, move |mut handle| async move {
                let cancelled = handle.cancelled();
                let checks = run_preflight(file, request, &app, &mut handle);
                until_cancelled(cancelled, Box::pin(checks)).await?;
                handle.require_passed_checks()
            });
    Ok((StatusCode::ACCEPTED, Json(started?)))
}

/// Starts to test a sandbox provider with a real sandbox, which is removed at the end.
#[utoipa::path(
    post,
    path = "/selftest",
    tag = "machine",
    request_body = SelftestStart,
    responses(
        (status = 202, body = Operation),
        (status = 422, body = Problem),
        (status = 429, body = Problem)
    )
)]
async fn selftest(
    State(context): State<ServerContext>,
    Json(asked): Json<SelftestStart>,
) -> Result<(StatusCode, Json<Operation>), Problem> {
    let app = app_in(&context, asked.directory.as_deref())?;
    let started = context
        .operations
        .start(OperationKind::Selftest, move |mut handle| async move {
            let request = SelftestRequest {
                provider: asked.provider.into(),
                agent: asked.agent,
                offline: asked.offline,
                cancelled: handle.cancelled(),
            };
            Box::pin(run_selftest(&request, &app, &mut handle)).await?;
            handle.require_passed_checks()
        });
    Ok((StatusCode::ACCEPTED, Json(started?)))
}
