//! `/runs/{id}/evidence` and `/audit`: what proves the result of a run.

use axum::Json;
use axum::extract::{Path, State};
use ralph_app::results::{Evidence, evidence};
use ralph_audit::{AuditReport, audit};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::problem_responses::ReadProblems;
use crate::context::ServerContext;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new()
        .routes(routes!(run_evidence))
        .routes(routes!(run_audit))
}

/// Returns the checks at the base commit and in clean rooms, and the changed files that affect them.
#[utoipa::path(
    get,
    path = "/runs/{id}/evidence",
    tag = "results",
    params(("id" = String, Path, description = "The id of the run.")),
    responses((status = 200, body = Evidence), ReadProblems)
)]
async fn run_evidence(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
) -> Result<Json<Evidence>, Problem> {
    let read = context.with_run(id, |run| async move {
        Ok(evidence(&run.dir, &run.state, &run.app).await?)
    });
    Ok(Json(read.await?))
}

/// The result of the independent check of a run.
#[derive(Debug, Serialize, ToSchema)]
struct AuditResult {
    /// Whether no promise was broken.
    green: bool,
    #[serde(flatten)]
    report: AuditReport,
}

/// Checks the files of a run with the independent oracle, as `ralph audit` does. It changes nothing.
#[utoipa::path(
    get,
    path = "/runs/{id}/audit",
    tag = "results",
    params(("id" = String, Path, description = "The id of the run.")),
    responses((status = 200, body = AuditResult), ReadProblems)
)]
async fn run_audit(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
) -> Result<Json<AuditResult>, Problem> {
    let audited = context.with_run(id, |run| async move {
        let providers = run.app.providers()?;
        let secrets = run.app.environment().secrets();
        let state = providers.state.root();
        let report = audit(run.dir.root(), state, &providers.search_path, &secrets);
        Ok(AuditResult {
            green: report.is_green(),
            report,
        })
    });
    Ok(Json(audited.await?))
}
