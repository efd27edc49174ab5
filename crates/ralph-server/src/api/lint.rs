//! `/lint`: checks the text of a task file.

use axum::Json;
use axum::extract::State;
use ralph_app::planning::lint_task;
use ralph_core::lint::{LintFinding, LintSeverity};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::directory::app_in;
use crate::app_thread::call_app;
use crate::context::ServerContext;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new().routes(routes!(lint))
}

/// The text of a task file.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct LintRequest {
    text: String,
    /// The directory whose profiles and prices apply.
    directory: Option<String>,
}

/// The findings in a task file.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
struct LintResult {
    /// Whether a run of the task can start.
    ok: bool,
    /// In the order of the lines.
    findings: Vec<TaskFinding>,
}

/// A problem in a task file with its fix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct TaskFinding {
    /// Stable, such as `missing-test-command`.
    code: String,
    severity: TaskFindingSeverity,
    /// Counted from 1.
    line: Option<u32>,
    /// In characters, counted from 1.
    column: Option<u32>,
    message: String,
    fix: String,
}

/// Whether a finding prevents a run from starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum TaskFindingSeverity {
    Error,
    Warning,
}

impl From<LintFinding> for TaskFinding {
    fn from(finding: LintFinding) -> Self {
        Self {
            code: finding.code.to_owned(),
            severity: match finding.severity {
                LintSeverity::Error => TaskFindingSeverity::Error,
                LintSeverity::Warning => TaskFindingSeverity::Warning,
            },
            line: finding.line,
            column: finding.column,
            message: finding.message,
            fix: finding.fix,
        }
    }
}

/// Checks the text of a task file. Nothing is stored.
#[utoipa::path(
    post,
    path = "/lint",
    tag = "tasks",
    request_body = LintRequest,
    responses(
        (status = 200, body = LintResult),
        (status = 422, body = Problem)
    )
)]
async fn lint(
    State(context): State<ServerContext>,
    Json(request): Json<LintRequest>,
) -> Result<Json<LintResult>, Problem> {
    let app = app_in(&context, request.directory.as_deref())?;
    let findings = call_app(move || async move { Ok(lint_task(request.text.as_bytes(), &app)) });
    let findings = findings.await?;
    Ok(Json(LintResult {
        ok: findings
            .iter()
            .all(|finding| finding.severity != LintSeverity::Error),
        findings: findings.into_iter().map(TaskFinding::from).collect(),
    }))
}
