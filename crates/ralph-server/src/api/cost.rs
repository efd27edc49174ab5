//! `/cost`: the cost of all runs.

use std::time::Duration;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use ralph_app::runs::{CostGrouping, CostReport, CostStart, cost_report};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_thread::call_app_within;
use crate::context::ServerContext;
use crate::problem::Problem;

/// The longest report: it reads all journals.
const TIMEOUT: Duration = Duration::from_mins(2);

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new().routes(routes!(cost))
}

/// The charges to sum.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct CostQuery {
    /// The groups; the default is `run`.
    #[param(inline)]
    by: Option<CostGroup>,
    /// Leaves out older charges: a time such as `7d` or `12h`, or a date such as `2026-11-01`.
    since: Option<String>,
}

/// The groups of charges.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum CostGroup {
    Run,
    Day,
    Repo,
    Model,
}

impl From<CostGroup> for CostGrouping {
    fn from(group: CostGroup) -> Self {
        match group {
            CostGroup::Run => Self::Run,
            CostGroup::Day => Self::Day,
            CostGroup::Repo => Self::Repo,
            CostGroup::Model => Self::Model,
        }
    }
}

/// Sums the cost of all runs by run, day, repository or model.
#[utoipa::path(
    get,
    path = "/cost",
    tag = "machine",
    params(CostQuery),
    responses(
        (status = 200, body = CostReport),
        (status = 422, body = Problem)
    )
)]
async fn cost(
    State(context): State<ServerContext>,
    Query(query): Query<CostQuery>,
) -> Result<Json<CostReport>, Problem> {
    let by = query.by.map_or(CostGrouping::Run, CostGrouping::from);
    let start = query.since.as_deref().map(CostStart::parse).transpose();
    let start = start.map_err(|why| {
        Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid-since",
            format!("cannot use `since` — {why}"),
        )
        .with_hint("write it like `7d`, `12h` or `2026-11-01`")
    })?;
    let report = call_app_within(TIMEOUT, move || async move {
        let now = context.app.clock().now();
        cost_report(by, start.map(|start| start.timestamp(now)), &context.app)
    });
    Ok(Json(report.await?))
}
