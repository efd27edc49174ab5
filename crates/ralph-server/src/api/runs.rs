//! `/runs`: lists runs.

use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use ralph_app::AppError;
use ralph_app::runs::{RunDetails, RunSummary};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::context::ServerContext;
use crate::index::{IndexState, RunFilter};
use crate::problem::Problem;

/// The most runs of one response.
const MAX_LIMIT: usize = 1000;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new().routes(routes!(list))
}

/// Which runs to return.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// The `next` of an earlier page. Runs that start later do not change what follows.
    cursor: Option<String>,
    /// The number of runs: 1 to 1000, or 50 without it.
    limit: Option<usize>,
    /// Only runs with one of these statuses, separated by commas.
    status: Option<String>,
    /// Only runs whose id, task, title, branch or repository contains this text, in any case.
    text: Option<String>,
    /// Only runs of this repository: a path, or an address on a source host.
    repo: Option<String>,
    /// Only runs that do not continue without the user, or only the others.
    attention: Option<bool>,
}

impl ListQuery {
    fn filter(&self) -> Result<RunFilter, AppError> {
        let mut filter = RunFilter::default();
        if let Some(statuses) = &self.status {
            filter = filter.with_statuses(statuses)?;
        }
        if let Some(text) = &self.text {
            filter = filter.with_text(text);
        }
        if let Some(repo) = &self.repo {
            filter = filter.with_repo(repo);
        }
        Ok(match self.attention {
            Some(needs_attention) => filter.with_attention(needs_attention),
            None => filter,
        })
    }
}

/// A part of the list of runs. Describes the response, which is joined from stored texts.
#[derive(Debug, Serialize, ToSchema)]
struct RunList {
    /// Newest first; each as in `ralph show --json`.
    runs: Vec<ListedRun>,
    /// Continues the list; null at its end.
    next: Option<String>,
    /// Why the index catches up with the files, from which the list was read; null if it is up to date.
    catching_up: Option<String>,
}

/// A run in a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it describes a part of the response")]
enum ListedRun {
    /// Everything that is known about the run.
    Readable(Box<RunDetails>),
    /// A run whose journal is damaged, or was written by a newer ralph.
    Unreadable(Box<RunSummary>),
}

/// Lists runs, newest first.
#[utoipa::path(
    get,
    path = "/runs",
    tag = "runs",
    params(ListQuery),
    responses((status = 200, body = RunList), (status = 422, body = Problem))
)]
async fn list(
    State(context): State<ServerContext>,
    Query(query): Query<ListQuery>,
) -> Result<impl IntoResponse, Problem> {
    let limit = query.limit.unwrap_or(50);
    if !(1..=MAX_LIMIT).contains(&limit) {
        let detail = format!("invalid limit {limit} — it is 1 to {MAX_LIMIT}");
        return Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid-request",
            detail,
        ));
    }
    let filter = query.filter()?;
    let page = context.index.list(&filter, query.cursor.as_deref(), limit);
    let page = page.await?;
    let why = match page.state {
        IndexState::Ready => None,
        IndexState::CatchingUp { why } => Some(why),
    };
    // The stored descriptions are JSON already.
    let body = format!(
        "{{\"runs\":[{}],\"next\":{},\"catching_up\":{}}}",
        page.runs.join(","),
        json!(page.next),
        json!(why)
    );
    Ok(([(header::CONTENT_TYPE, "application/json")], body))
}
