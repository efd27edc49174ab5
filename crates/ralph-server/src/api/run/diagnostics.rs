//! `/runs/{id}/diagnostics`: the doctor's report, a new consultation, and its application.

use axum::Json;
use axum::extract::{Path, State};
use ralph_app::AppError;
use ralph_core::doctor::DoctorReport;
use ralph_core::run::Command;
use ralph_engine::durable;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::send::{CommandEffect, send};
use crate::api::problem_responses::{CommandProblems, ReadProblems};
use crate::context::ServerContext;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new()
        .routes(routes!(diagnostics, diagnose))
        .routes(routes!(apply))
}

/// What the doctor found.
#[derive(Debug, Serialize, ToSchema)]
struct Diagnostics {
    /// `diagnostics.md`: all reports, the latest first.
    text: String,
    /// The number of the last consultation; 0 before the first.
    consultation: u32,
    /// Whether a consultation is requested or in progress.
    in_progress: bool,
    /// The last report, until it is applied.
    report: Option<DoctorReport>,
}

/// Returns the reports of the doctor.
#[utoipa::path(
    get,
    path = "/runs/{id}/diagnostics",
    tag = "steering",
    params(("id" = String, Path, description = "The id of the run.")),
    responses((status = 200, body = Diagnostics), ReadProblems)
)]
async fn diagnostics(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
) -> Result<Json<Diagnostics>, Problem> {
    let read = context.with_run(id, |run| async move {
        let file = run.dir.file("diagnostics.md");
        let text = durable::read_if_present(&file).map_err(AppError::from)?;
        let doctor = &run.state.doctor;
        let mut pending = run.state.pending_commands.iter();
        let is_requested = doctor.due || pending.any(|(_, command)| *command == Command::Diagnose);
        let is_open = doctor.number > 0 && !doctor.is_finished;
        Ok(Diagnostics {
            text: run.redacted(&text.unwrap_or_default()),
            consultation: doctor.number,
            in_progress: is_requested || is_open,
            report: doctor.report.as_ref().map(|(_, report)| report.clone()),
        })
    });
    Ok(Json(read.await?))
}

/// Consults the doctor: before the next iteration, or now if no process works on the run. The response
/// arrives when the doctor has answered, or when the request is accepted.
#[utoipa::path(
    post,
    path = "/runs/{id}/diagnostics",
    tag = "steering",
    params(("id" = String, Path, description = "The id of the run.")),
    responses(
        (status = 200, body = CommandEffect),
        (status = 202, body = CommandEffect),
        CommandProblems
    )
)]
async fn diagnose(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
) -> Result<CommandEffect, Problem> {
    let sent = context.with_run(id, |run| async move {
        send(&run, Command::Diagnose, None).await
    });
    sent.await
}

/// Applies the doctor's last report: guardrails, edits of the task and the profile.
#[utoipa::path(
    post,
    path = "/runs/{id}/diagnostics/apply",
    tag = "steering",
    params(("id" = String, Path, description = "The id of the run.")),
    responses(
        (status = 200, body = CommandEffect),
        (status = 202, body = CommandEffect),
        CommandProblems
    )
)]
async fn apply(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
) -> Result<CommandEffect, Problem> {
    let sent = context.with_run(
        id,
        |run| async move { send(&run, Command::Apply, None).await },
    );
    sent.await
}
