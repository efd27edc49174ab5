//! `/issues`: the issues of a repository with what each waits for, and the poller that works on them.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use ralph_app::issues::{IssueOverview, IssueRepository, IssueRunOptions, PendingRebuild};
use ralph_core::budget::BudgetLimits;
use ralph_core::image::ImageEffort;
use ralph_core::plan::EngineKind;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::checks::EngineChoice;
use super::directory::app_in;
use crate::app_thread::call_app_within;
use crate::context::ServerContext;
use crate::poller::{PollerReport, PollerStart};
use crate::problem::Problem;

/// The longest list: the source host is asked for each dependency.
const TIMEOUT: Duration = Duration::from_mins(2);

/// The time between two looks, if the request names none.
const DEFAULT_INTERVAL: u64 = 30;

/// The most issues at the same time.
const MAX_WORKERS: u32 = 16;

/// The longest interval and timeout, in seconds.
const MAX_SECONDS: u64 = 366 * 24 * 3600;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(poller))
        .routes(routes!(start_poller))
        .routes(routes!(stop_poller))
}

/// The repository to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct IssueQuery {
    /// An address or a path; the default is the directory's repository.
    repo: Option<String>,
    /// An absolute path; the default is the directory that the server was started in.
    directory: Option<String>,
}

/// How to poll.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PollerRequest {
    /// An address or a path; the default is the directory's repository.
    repo: Option<String>,
    /// An absolute path; the default is the directory that the server was started in.
    directory: Option<String>,
    /// The time between two looks; the default is 30.
    #[schema(minimum = 1)]
    interval_seconds: Option<u64>,
    /// The time after which no more work starts.
    #[schema(minimum = 1)]
    timeout_seconds: Option<u64>,
    /// The number of issues at the same time; the default is `issues.workers` of the settings.
    #[schema(minimum = 1, maximum = 16)]
    workers: Option<u32>,
    sandbox: Option<String>,
    engine: Option<EngineChoice>,
    agent: Option<String>,
    profile: Option<String>,
    model: Option<String>,
}

/// Lists the open specifications of a repository: status, dependencies that are not done, and claims.
#[utoipa::path(
    get,
    path = "/issues",
    tag = "issues",
    params(IssueQuery),
    responses(
        (status = 200, body = IssueOverview),
        (status = 422, body = Problem),
        (status = 502, body = Problem)
    )
)]
async fn list(
    State(context): State<ServerContext>,
    Query(query): Query<IssueQuery>,
) -> Result<Json<IssueOverview>, Problem> {
    let app = app_in(&context, query.directory.as_deref())?;
    let redactor = app.redactor();
    let overview = call_app_within(TIMEOUT, move || async move {
        let opened = IssueRepository::open_read_only(query.repo.as_deref(), &app);
        let repository = Box::pin(opened).await?;
        IssueOverview::read(&repository).await
    });
    let overview = overview.await;
    Ok(Json(overview.map_err(|error| {
        Problem::of_service(error.redacted(&redactor))
    })?))
}

/// Returns the state of the poller.
#[utoipa::path(
    get,
    path = "/issues/poller",
    tag = "issues",
    responses((status = 200, body = PollerReport))
)]
async fn poller(State(context): State<ServerContext>) -> Json<PollerReport> {
    Json(context.poller.report())
}

/// Starts the poller, which works on every issue that is ready until it is stopped.
#[utoipa::path(
    post,
    path = "/issues/poller/start",
    tag = "issues",
    request_body = PollerRequest,
    responses(
        (status = 202, body = PollerReport),
        (status = 409, body = Problem),
        (status = 422, body = Problem)
    )
)]
async fn start_poller(
    State(context): State<ServerContext>,
    Json(request): Json<PollerRequest>,
) -> Result<(StatusCode, Json<PollerReport>), Problem> {
    let app = app_in(&context, request.directory.as_deref())?;
    let interval = seconds("interval_seconds", request.interval_seconds)?;
    let workers = match request.workers {
        Some(workers @ 1..=MAX_WORKERS) => Some(usize::try_from(workers).unwrap_or(1)),
        Some(_) => {
            return Err(invalid(&format!(
                "`workers` is between 1 and {MAX_WORKERS}"
            )));
        }
        None => None,
    };
    if request.profile.is_some() && (request.model.is_some() || request.agent.is_some()) {
        return Err(invalid("`profile` excludes `model` and `agent`"));
    }
    let report = context.poller.start(PollerStart {
        app: Arc::new(app),
        repo: request.repo,
        interval: interval.unwrap_or(Duration::from_secs(DEFAULT_INTERVAL)),
        timeout: seconds("timeout_seconds", request.timeout_seconds)?,
        workers,
        run: IssueRunOptions {
            sandbox: request.sandbox,
            engine: request.engine.map(EngineKind::from),
            agent: request.agent,
            profile: request.profile,
            model: request.model,
            limits: BudgetLimits::default(),
            rebuild: PendingRebuild::new(ImageEffort::Reuse),
        },
    })?;
    Ok((StatusCode::ACCEPTED, Json(report)))
}

fn seconds(name: &str, value: Option<u64>) -> Result<Option<Duration>, Problem> {
    match value {
        Some(value @ 1..=MAX_SECONDS) => Ok(Some(Duration::from_secs(value))),
        Some(_) => Err(invalid(&format!("`{name}` is between 1 and {MAX_SECONDS}"))),
        None => Ok(None),
    }
}

fn invalid(why: &str) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid-request", why)
}

/// Stops the poller: its runs are parked, and their issues become ready again.
#[utoipa::path(
    post,
    path = "/issues/poller/stop",
    tag = "issues",
    responses((status = 202, body = PollerReport))
)]
async fn stop_poller(State(context): State<ServerContext>) -> (StatusCode, Json<PollerReport>) {
    (StatusCode::ACCEPTED, Json(context.poller.request_stop()))
}
