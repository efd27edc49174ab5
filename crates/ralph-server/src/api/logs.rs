//! `/runs/{id}/logs/{log}`: parts of the logs of a run.

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRef, Path, Query, State};
use axum::http::StatusCode;
use ralph_app::logs::{LogPart, LogRequest, LogStart, read_log};
use ralph_app::{App, AppError};
use ralph_core::id::RunId;
use ralph_engine::durable::StoreError;
use ralph_engine::store::RunDir;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_thread::call_app;
use crate::problem::Problem;

/// The bytes that are read without a `limit`.
const DEFAULT_LIMIT: u32 = 64 << 10;
/// The highest `limit`.
const MAX_LIMIT: u32 = 1 << 20;

pub(crate) fn routes<S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Arc<App>: FromRef<S>,
{
    OpenApiRouter::new().routes(routes!(log))
}

/// A log of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum LogName {
    /// What the run did, a line per event.
    Activity,
    /// The errors of the run.
    Errors,
    /// The output of the running command or agent, as long as its iteration is open.
    Output,
}

/// Which part of a log to read.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct LogQuery {
    /// The position of the first byte; a negative one counts from the end, and starts at a line. Without it,
    /// the log is read from its beginning.
    #[param(minimum = -9_007_199_254_740_991_i64, maximum = 9_007_199_254_740_991_i64)]
    from: Option<i64>,
    /// The number of bytes; without it, 65,536.
    #[param(minimum = 4, maximum = 1_048_576)]
    limit: Option<u32>,
    /// The `mark` of the part that ended at `from`: with it, a log that was truncated or replaced is noticed.
    mark: Option<String>,
}

impl LogQuery {
    /// Returns the request; none if the limit is invalid.
    fn request(&self) -> Option<LogRequest> {
        let limit = self.limit.unwrap_or(DEFAULT_LIMIT);
        if !(4..=MAX_LIMIT).contains(&limit) {
            return None;
        }
        let from = self.from.unwrap_or(0);
        let start = match u64::try_from(from) {
            Ok(at) => LogStart::Byte {
                at,
                mark: self.mark.clone(),
            },
            Err(_) => LogStart::BeforeEnd(from.unsigned_abs()),
        };
        Some(LogRequest {
            start,
            limit: limit.into(),
        })
    }
}

/// A part of a log.
#[derive(Debug, Default, Serialize, ToSchema)]
struct LogText {
    /// Whole lines if more follows. Invalid bytes are replaced, secrets are masked.
    text: String,
    /// The position of the text in the file, in bytes.
    from: u64,
    /// The position behind the text: the next `from`.
    to: u64,
    /// The size of the file.
    size: u64,
    /// Identifies the file up to `to`: the next `mark`.
    mark: String,
    /// Whether the log was truncated or replaced since the part with the given `mark`; the text then starts at
    /// its beginning.
    restarted: bool,
    /// The iteration of the output; null for the other logs, and if no iteration is open.
    iteration: Option<u32>,
}

impl LogText {
    fn new(part: Option<LogPart>, iteration: Option<u32>) -> Self {
        let Some(part) = part else {
            return Self {
                iteration,
                ..Self::default()
            };
        };
        Self {
            text: part.text,
            from: part.from,
            to: part.to,
            size: part.size,
            mark: part.mark,
            restarted: part.restarted,
            iteration,
        }
    }
}

/// Returns a part of a log of a run.
#[utoipa::path(
    get,
    path = "/runs/{id}/logs/{log}",
    tag = "runs",
    params(
        ("id" = String, Path, description = "The id of the run."),
        ("log" = inline(LogName), Path, description = "The log."),
        LogQuery
    ),
    responses(
        (status = 200, body = LogText, description = "The part; empty if the log does not exist yet."),
        (status = 400, body = Problem),
        (status = 404, body = Problem, description = "There is no such run or log.")
    )
)]
async fn log(
    State(app): State<Arc<App>>,
    Path((id, log)): Path<(String, String)>,
    Query(query): Query<LogQuery>,
) -> Result<Json<LogText>, Problem> {
    let Some(request) = query.request() else {
        let detail = format!("`limit` is not 4 to {MAX_LIMIT}");
        let status = StatusCode::BAD_REQUEST;
        return Err(Problem::new(status, "invalid-query", detail));
    };
    let log = match log.as_str() {
        "activity" => LogName::Activity,
        "errors" => LogName::Errors,
        "output" => LogName::Output,
        _ => return Err(not_found(format!("there is no log `{log}`"))),
    };
    let run = RunId::parse(&id).ok_or_else(|| not_found("there is no such run"))?;
    let read = call_app(move || async move {
        let dir = app.state_dir()?.run(&run);
        if !dir.journal().exists() {
            return Ok(None);
        }
        read_run_log(&dir, log, &request, &app).map(Some)
    });
    match read.await? {
        Some(text) => Ok(Json(text)),
        None => Err(not_found(format!("there is no run `{id}`"))),
    }
}

fn read_run_log(
    dir: &RunDir,
    log: LogName,
    request: &LogRequest,
    app: &App,
) -> Result<LogText, AppError> {
    let list = || {
        dir.newest_open_iteration()
            .map_err(StoreError::when("list", dir.root()))
    };
    let (path, iteration) = match log {
        LogName::Activity => (dir.file("activity.log"), None),
        LogName::Errors => (dir.file("errors.log"), None),
        LogName::Output => match list()? {
            Some(iteration) => (dir.live_output(iteration), Some(iteration)),
            None => return Ok(LogText::default()),
        },
    };
    let part = read_log(&path, request, &app.redactor())?;
    Ok(LogText::new(part, iteration))
}

fn not_found(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "not-found", detail)
        .with_hint("`GET /api/v1/runs` lists the runs")
}
