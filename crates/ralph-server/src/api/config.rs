//! `/config`: the effective settings of a directory, and the proposals of its repository.

use std::path::PathBuf;
use std::time::Duration;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use ralph_app::AppError;
use ralph_app::checks::review_project;
use ralph_app::planning::{EffectiveSetting, SettingEntry, effective_settings};
use ralph_app::trust::TrustReviewReport;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::directory::{DirectoryQuery, app_in};
use crate::app_thread::call_app_within;
use crate::context::ServerContext;
use crate::problem::Problem;

/// The longest review: git reads the repository's files.
const TIMEOUT: Duration = Duration::from_mins(1);

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new()
        .routes(routes!(config))
        .routes(routes!(approve))
}

/// The effective configuration of a directory.
#[derive(Debug, Serialize, ToSchema)]
struct ConfigReport {
    directory: String,
    /// Sorted by key.
    settings: Vec<SettingEntry>,
    /// What the repository proposes, and what waits for an approval.
    trust: TrustReviewReport,
}

/// The proposals to approve, as the user saw them.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ApprovalRequest {
    /// An absolute path.
    directory: String,
    /// All pending proposals.
    proposals: Vec<ApprovedValue>,
}

/// A value that the user approves.
#[derive(Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ApprovedValue {
    file: String,
    key: String,
    value: String,
}

/// Returns the effective settings with their sources, and the proposals of the repository.
#[utoipa::path(
    get,
    path = "/config",
    tag = "machine",
    params(DirectoryQuery),
    responses(
        (status = 200, body = ConfigReport),
        (status = 422, body = Problem)
    )
)]
async fn config(
    State(context): State<ServerContext>,
    Query(query): Query<DirectoryQuery>,
) -> Result<Json<ConfigReport>, Problem> {
    let app = app_in(&context, query.directory.as_deref())?;
    let report = call_app_within(TIMEOUT, move || async move {
        let directory = app.environment().working_dir().to_owned();
        let settings = effective_settings(&app)?;
        let entry = |setting: &EffectiveSetting| setting.entry(setting.listed_value());
        let review = review_project(&directory, &directory, &app).await?;
        Ok(ConfigReport {
            directory: directory.display().to_string(),
            settings: settings.iter().map(entry).collect(),
            trust: TrustReviewReport::new(&review),
        })
    });
    Ok(Json(report.await?))
}

/// Approves the pending proposals of a repository. They must be exactly those that the user saw.
#[utoipa::path(
    post,
    path = "/config/approvals",
    tag = "machine",
    request_body = ApprovalRequest,
    responses(
        (status = 200, body = TrustReviewReport),
        (status = 409, body = Problem),
        (status = 422, body = Problem)
    )
)]
async fn approve(
    State(context): State<ServerContext>,
    Json(request): Json<ApprovalRequest>,
) -> Result<Json<TrustReviewReport>, Problem> {
    let app = app_in(&context, Some(&request.directory))?;
    let directory = PathBuf::from(&request.directory);
    let approved = call_app_within(TIMEOUT, move || async move {
        let mut review = review_project(&directory, &directory, &app).await?;
        let pending = review.pending.iter().map(|proposal| ApprovedValue {
            file: proposal.file.clone(),
            key: proposal.key.clone(),
            value: proposal.value.clone(),
        });
        if !is_same(&pending.collect::<Vec<_>>(), &request.proposals) {
            return Ok(None);
        }
        app.state_dir()?;
        review.approve().map_err(AppError::from)?;
        Ok(Some(TrustReviewReport::new(&review)))
    });
    let Some(report) = approved.await? else {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "other-proposals",
            "nothing was approved — the pending proposals are not those of the request",
        )
        .with_hint("read `/config` again, and approve what it lists as pending"));
    };
    Ok(Json(report))
}

fn is_same(pending: &[ApprovedValue], named: &[ApprovedValue]) -> bool {
    pending.len() == named.len() && pending.iter().all(|value| named.contains(value))
}
