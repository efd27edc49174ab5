//! `/runs/{id}/debug`: the commands of the contract that the mode `debug` allows, by id only.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest, Path, Request, State};
use axum::http::StatusCode;
use ralph_app::steering::{self, DebugCommand, SentCommandOutcome, debug_commands};
use ralph_core::run::Command;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::send::require_accepted;
use crate::api::problem_responses::{CommandProblems, ReadProblems};
use crate::context::ServerContext;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(start))
}

/// The debug commands of a run.
#[derive(Debug, Serialize, ToSchema)]
struct DebugCommandList {
    commands: Vec<DebugCommand>,
}

/// Lists the ids of the contract in force.
#[utoipa::path(
    get,
    path = "/runs/{id}/debug",
    tag = "steering",
    params(("id" = String, Path, description = "The id of the run.")),
    responses((status = 200, body = DebugCommandList), ReadProblems)
)]
async fn list(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
) -> Result<Json<DebugCommandList>, Problem> {
    let read = context.with_run(id, |run| async move {
        let mut commands = debug_commands(&run.dir, &run.state)?;
        for entry in &mut commands {
            let command = entry.command.take();
            entry.command = command.map(|command| run.redacted(command.as_bytes()));
        }
        Ok(DebugCommandList { commands })
    });
    Ok(Json(read.await?))
}

/// The result of a debug command.
#[derive(Debug, Serialize, ToSchema)]
struct DebugResult {
    /// Whether it was executed; otherwise it is accepted and runs at the next action.
    done: bool,
    /// Whether it exited with 0.
    succeeded: bool,
    /// The command and how it ended.
    detail: String,
    /// The end of its output, at most 16 KiB.
    output: String,
}

/// Runs a command of the contract in the sandbox, or prints a log. Only ids are accepted.
#[utoipa::path(
    post,
    path = "/runs/{id}/debug/{command_id}",
    tag = "steering",
    params(
        ("id" = String, Path, description = "The id of the run."),
        ("command_id" = String, Path, description = "An id of `GET /runs/{id}/debug`."),
    ),
    responses(
        (status = 200, body = DebugResult),
        (status = 202, body = DebugResult),
        CommandProblems
    )
)]
async fn start(
    State(context): State<ServerContext>,
    Path((id, command_id)): Path<(String, String)>,
    _empty: EmptyBody,
) -> Result<(StatusCode, Json<DebugResult>), Problem> {
    let sent = context.with_run(id, move |run| async move {
        let command = Command::Debug {
            id: command_id.clone(),
        };
        require_accepted(&run, &command)?;
        let known = debug_commands(&run.dir, &run.state)?;
        if !known.iter().any(|entry| entry.id == command_id) {
            let ids: Vec<&str> = known.iter().map(|entry| entry.id.as_str()).collect();
            let detail = "the contract has no command with this id";
            return Err(
                Problem::new(StatusCode::NOT_FOUND, "unknown-debug-id", detail)
                    .with_hint(format!("use one of {}", ids.join(", "))),
            );
        }
        let sent = steering::send_command(&run.dir, command.clone(), &run.app);
        Ok(match Box::pin(sent).await? {
            SentCommandOutcome::Done(done) => DebugResult {
                done: true,
                succeeded: done.succeeded,
                detail: run.redacted(done.detail.as_bytes()),
                output: run.redacted(done.output.as_bytes()),
            },
            SentCommandOutcome::Deferred => DebugResult {
                done: false,
                succeeded: false,
                detail: command.effect(run.state.plan.agent.is_some()),
                output: String::new(),
            },
        })
    });
    let result = sent.await?;
    let status = if result.done {
        StatusCode::OK
    } else {
        StatusCode::ACCEPTED
    };
    Ok((status, Json(result)))
}

/// A request without a body: a command cannot be sent.
struct EmptyBody;

impl<S: Send + Sync> FromRequest<S> for EmptyBody {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        match Bytes::from_request(request, state).await {
            Ok(body) if body.is_empty() => Ok(Self),
            Ok(_) | Err(_) => {
                let detail = "the request must not have a body: a command is chosen by its id";
                let status = StatusCode::BAD_REQUEST;
                Err(Problem::new(status, "unexpected-body", detail))
            }
        }
    }
}
