//! `/runs/{id}/task`: the contract in force, and a changed task.

use std::path::Path as FilePath;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use ralph_app::steering::{ProposedTask, propose_task};
use ralph_app::{AppError, planning};
use ralph_core::lint::LintFinding;
use ralph_core::run::Command;
use ralph_core::task::TaskFile;
use ralph_engine::contract;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::etag::{ETagged, FileVersion, WriteCondition};
use super::send::{require_accepted, send};
use crate::api::problem_responses::{ReadProblems, WriteProblems};
use crate::context::ServerContext;
use crate::problem::Problem;
use crate::run_access::RunAccess;

/// The name of the task in findings.
const TASK_NAME: &str = "ralph_task.md";

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new().routes(routes!(task, change_task))
}

/// The task of a run.
#[derive(Debug, Serialize, ToSchema)]
struct ShownTask {
    /// The contract in force, in Markdown with front matter, with the current ticks.
    text: String,
    /// The name of the contract in force.
    contract: String,
    /// Whether a changed task waits for the next iteration.
    change_pending: bool,
}

/// Returns the contract in force. Its version does not depend on the ticks.
#[utoipa::path(
    get,
    path = "/runs/{id}/task",
    tag = "steering",
    params(("id" = String, Path, description = "The id of the run.")),
    responses((status = 200, body = ShownTask, headers(("ETag" = String, description = "The version of the contract."))), ReadProblems)
)]
async fn task(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
) -> Result<ETagged<ShownTask>, Problem> {
    let read = context.with_run(id, |run| async move {
        let task = task_in_force(&run)?;
        Ok(ETagged {
            version: FileVersion(run.state.contract.clone()),
            body: ShownTask {
                text: run.redacted(task.with_ticks(&run.state.ticked).as_bytes()),
                contract: run.state.contract.to_string(),
                change_pending: run.state.wanted_contract.is_some(),
            },
        })
    });
    read.await
}

fn task_in_force(run: &RunAccess) -> Result<TaskFile, Problem> {
    let task = contract::load_contract(&run.dir, &run.state.contract);
    task.map_err(|error| {
        let what = format!("cannot read the task of run `{}`", run.id());
        AppError::runtime(what, error.to_string(), error.hint()).into()
    })
}

/// A changed task.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ChangedTask {
    /// The whole task file; its ticks are ignored.
    text: String,
}

/// The effect of a changed task.
#[derive(Debug, Serialize, ToSchema)]
struct TaskChange {
    /// The differences to the contract in force; empty if the text is in force already.
    changes: Vec<String>,
    effect: String,
    /// The linter's warnings.
    findings: Vec<LintFinding>,
}

/// Puts a changed task in force from the next iteration on. Errors of the linter are in `findings`.
#[utoipa::path(
    put,
    path = "/runs/{id}/task",
    tag = "steering",
    params(
        ("id" = String, Path, description = "The id of the run."),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the task that was changed."),
    ),
    request_body = ChangedTask,
    responses((status = 200, body = TaskChange), WriteProblems)
)]
async fn change_task(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Json(changed): Json<ChangedTask>,
) -> Result<Json<TaskChange>, Problem> {
    let condition = WriteCondition::from_headers(&headers)?;
    let change = context.with_run(id, move |run| async move {
        let command = Command::Task {
            contract: run.state.contract.clone(),
        };
        require_accepted(&run, &command)?;
        let shown = task_in_force(&run)?.with_ticks(&run.state.ticked);
        let version = FileVersion(run.state.contract.clone());
        let shown = run.redacted(shown.as_bytes());
        condition.check(Some(&version), (&shown, &changed.text))?;
        let (task, findings) = lint(&changed.text)?;
        let Some(proposed) = propose_task(&run.dir, &run.state, &task, &run.app)? else {
            return Ok(TaskChange {
                changes: Vec::new(),
                effect: "this task is already in force".to_owned(),
                findings,
            });
        };
        let ProposedTask { contract, changes } = proposed;
        let effect = send(&run, Command::Task { contract }, None).await?;
        Ok(TaskChange {
            changes,
            effect: effect.effect,
            findings,
        })
    });
    Ok(Json(change.await?))
}

/// Returns the task and the warnings about it, or the errors as a problem.
fn lint(text: &str) -> Result<(TaskFile, Vec<LintFinding>), Problem> {
    planning::check_task_text(FilePath::new(TASK_NAME), text.as_bytes()).map_err(|error| {
        let problem = Problem::from(error);
        debug_assert_eq!(problem.status, StatusCode::UNPROCESSABLE_ENTITY.as_u16());
        problem
    })
}
