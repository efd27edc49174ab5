//! The streams of events, over WebSocket.

use std::future::pending;

use axum::extract::{FromRef, Path, Query, Request, State};
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::auth::Caller;
use crate::live::{FeedStart, LiveStreams, OutputStart, RunStreamStart};
use crate::problem::Problem;

pub(crate) fn routes<S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    LiveStreams: FromRef<S>,
{
    OpenApiRouter::new()
        .routes(routes!(run_events))
        .routes(routes!(all_events))
}

/// Where the stream of a run starts.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct RunStreamQuery {
    /// The number of the last event that the client has; without it, the stream starts with the first.
    after: Option<u64>,
    /// The live output: `ITERATION:BYTE` continues behind a frame's `to`, `none` omits it. Without it, the
    /// last 64 KiB come first.
    output: Option<String>,
}

impl RunStreamQuery {
    fn start(&self) -> Option<RunStreamStart> {
        let output = match self.output.as_deref() {
            None => OutputStart::Newest,
            Some("none") => OutputStart::Omitted,
            Some(position) => {
                let (iteration, byte) = position.split_once(':')?;
                OutputStart::At {
                    iteration: ralph_core::parse_value(iteration)?,
                    byte: ralph_core::parse_value(byte)?,
                }
            }
        };
        Some(RunStreamStart {
            after: self.after.unwrap_or(0),
            output,
        })
    }
}

/// Streams the events of a run over a WebSocket.
#[utoipa::path(
    get,
    path = "/runs/{id}/events",
    tag = "streams",
    params(("id" = String, Path, description = "The id of the run."), RunStreamQuery),
    responses(
        (status = 101, description = "The stream; see the reference of the protocol."),
        (status = 400, body = Problem),
        (status = 426, body = Problem, description = "The request is not a WebSocket handshake."),
        (status = 503, body = Problem, description = "There are too many streams."),
    )
)]
async fn run_events(
    State(streams): State<LiveStreams>,
    Path(id): Path<String>,
    Query(query): Query<RunStreamQuery>,
    request: Request,
) -> Result<Response, Problem> {
    let Some(start) = query.start() else {
        let detail = "`output` is neither `none` nor `ITERATION:BYTE`";
        return Err(Problem::new(
            axum::http::StatusCode::BAD_REQUEST,
            "invalid-query",
            detail,
        ));
    };
    let signed_out = signed_out(&request);
    Ok(streams.serve_run(request, id, start, signed_out))
}

/// Where the stream of all runs starts.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct FeedQuery {
    /// The cursor of the last frame that the client has; without it, the stream starts with new events.
    cursor: Option<String>,
}

/// Streams the events of all runs over a WebSocket.
#[utoipa::path(
    get,
    path = "/events",
    tag = "streams",
    params(FeedQuery),
    responses(
        (status = 101, description = "The stream; see the reference of the protocol."),
        (status = 400, body = Problem),
        (status = 426, body = Problem, description = "The request is not a WebSocket handshake."),
        (status = 503, body = Problem, description = "There are too many streams."),
    )
)]
async fn all_events(
    State(streams): State<LiveStreams>,
    Query(query): Query<FeedQuery>,
    request: Request,
) -> Response {
    let start = query.cursor.map_or(FeedStart::Newest, FeedStart::Behind);
    let signed_out = signed_out(&request);
    streams.serve_feed(request, start, signed_out)
}

/// Completes when the session of the caller ends; a token of programs has none.
fn signed_out(request: &Request) -> impl Future<Output = ()> + Send + 'static {
    let caller = request.extensions().get::<Caller>();
    let session = caller.and_then(|caller| caller.session.clone());
    async move {
        match session {
            Some(session) => session.ended().await,
            None => pending().await,
        }
    }
}
