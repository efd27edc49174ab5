//! `POST /runs`: starts a run.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ralph_core::id::RunId;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::run_request::{InvalidField, NewRun};
use crate::context::ServerContext;
use crate::problem::Problem;
use crate::supervisor::{IdempotencyKey, RequestRecord, StartError, StartPreview, Started};

/// The header with the key of a request that may be repeated.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new().routes(routes!(start))
}

/// A run that was started.
#[derive(Debug, Serialize, ToSchema)]
struct StartedRun {
    #[schema(value_type = String)]
    id: RunId,
    /// Its position among the runs that wait for a worker, from 1; null if it has one.
    queue_position: Option<usize>,
}

/// Starts a run, or returns its plan. A question that the request does not answer is a problem of the
/// type `question`, whose `field` names the answer.
#[utoipa::path(
    post,
    path = "/runs",
    tag = "runs",
    params(("Idempotency-Key" = Option<String>, Header, description = "Repeated requests with this key and body start one run.")),
    request_body = NewRun,
    responses(
        (status = 201, body = StartedRun, description = "The run was created, or the task's unfinished run continues.",
            headers(("Location" = String, description = "The path of the run."))),
        (status = 200, body = StartPreview, description = "The plan of a dry run, or the run of an earlier request with the same key."),
        (status = 400, body = Problem, description = "The body is not valid JSON."),
        (status = 409, body = Problem, description = "A request with this key is in progress, or something that the run needs is missing."),
        (status = 415, body = Problem, description = "The body is not JSON."),
        (status = 422, body = Problem, description = "The request is invalid, the task is rejected, or a question is open."),
        (status = 500, body = Problem, description = "The run cannot start."),
    )
)]
async fn start(
    State(context): State<ServerContext>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let new = parse(&headers, &body)?;
    let is_dry = new.dry_run;
    let working_dir = context.app.environment().working_dir().to_owned();
    let request = new.into_request(working_dir).map_err(invalid_field)?;
    if is_dry {
        let preview = context.supervisor.preview(request).await?;
        return Ok(Json(preview).into_response());
    }
    let key = headers.get(IDEMPOTENCY_KEY).map(|key| {
        let key = String::from_utf8_lossy(key.as_bytes());
        IdempotencyKey::new(&key, &body).ok_or_else(|| {
            invalid_field(InvalidField(
                "Idempotency-Key",
                "use 1 to 255 printable ASCII characters",
            ))
        })
    });
    let started = context.supervisor.start(request, key.transpose()?).await?;
    let (status, id) = match started {
        Ok(Started::Created(run) | Started::Continued(run)) => (StatusCode::CREATED, run),
        Ok(Started::Repeated(run)) => (StatusCode::OK, run),
        Err(record) => return Err(repeated(&record)),
    };
    // The next list contains the run.
    context.index.refresh().await;
    let location = [(header::LOCATION, format!("/api/v1/runs/{id}"))];
    let queue_position = context.supervisor.queue_position(&id);
    let body = Json(StartedRun { id, queue_position });
    Ok((status, location, body).into_response())
}

fn parse(headers: &HeaderMap, body: &[u8]) -> Result<NewRun, Problem> {
    let content_type = headers.get(header::CONTENT_TYPE);
    let content_type = content_type.map_or("", |value| value.to_str().unwrap_or(""));
    let is_json = content_type
        .split(';')
        .next()
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
    if !is_json {
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        let problem = Problem::new(status, "not-json", "the body must be JSON");
        return Err(problem.with_hint("send the header `Content-Type: application/json`"));
    }
    serde_json::from_slice(body).map_err(|error| {
        let status = if error.is_data() {
            StatusCode::UNPROCESSABLE_ENTITY
        } else {
            StatusCode::BAD_REQUEST
        };
        Problem::new(status, "invalid-request", error.to_string())
    })
}

fn invalid_field(InvalidField(field, fix): InvalidField) -> Problem {
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    Problem::new(status, "invalid-request", format!("`{field}` is invalid"))
        .with_hint(fix)
        .with_field(field)
}

fn repeated(record: &RequestRecord) -> Problem {
    let (status, kind, detail, hint) = match record {
        RequestRecord::OtherBody | RequestRecord::Created(_) => (
            StatusCode::UNPROCESSABLE_ENTITY,
            "other-body",
            "an earlier request had the same key and another body",
            "use another key",
        ),
        RequestRecord::Active => (
            StatusCode::CONFLICT,
            "in-progress",
            "a request with the same key is in progress",
            "repeat it later",
        ),
    };
    Problem::new(status, kind, detail)
        .with_hint(hint)
        .with_field("Idempotency-Key")
}

impl From<StartError> for Problem {
    fn from(error: StartError) -> Self {
        let problem = Self::from(error.error);
        let Some(question) = error.question else {
            // Something is missing on this machine, such as a credential or a container engine.
            if problem.status_code() == StatusCode::INTERNAL_SERVER_ERROR {
                let missing = Self::new(StatusCode::CONFLICT, "cannot-start", problem.detail);
                return missing.with_hint(problem.hint);
            }
            return problem;
        };
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        let mut asking = Self::new(status, "question", problem.detail)
            .with_hint(problem.hint)
            .with_field(question.field());
        asking.question = Some(Box::new(question));
        asking
    }
}
