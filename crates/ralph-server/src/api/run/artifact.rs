//! `/runs/{id}/iterations/{n}/{artifact}`: a file of an iteration as it is stored, or a range of it.

use std::io::SeekFrom;
use std::path::PathBuf;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use ralph_app::results::iteration_directory;
use ralph_core::ports::TranscriptFormat;
use ralph_engine::store::RunDir;
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _, Take};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::problem_responses::ReadProblems;
use crate::context::ServerContext;
use crate::problem::Problem;

/// The size of the pieces in which a file is sent.
const PIECE_BYTES: usize = 64 << 10;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new().routes(routes!(artifact))
}

/// Returns a file of an iteration: `prompt.md`, `response.json`, `actions.jsonl`, `git_diff.patch`,
/// `test_output.txt`, `metrics.json`, `pr_state.json`, `transcript.jsonl` or `transcript.txt`.
#[utoipa::path(
    get,
    path = "/runs/{id}/iterations/{number}/{artifact}",
    tag = "iterations",
    params(
        ("id" = String, Path, description = "The id of the run."),
        ("number" = u32, Path, description = "Counted from 1."),
        ("artifact" = String, Path, description = "The name of the file."),
        ("Range" = Option<String>, Header, description = "One range, such as `bytes=0-65535` or `bytes=-1000`."),
    ),
    responses(
        (status = 200, body = String, content_type = "text/plain"),
        (status = 206, body = String, content_type = "text/plain"),
        (status = 416, body = Problem, content_type = "application/problem+json"),
        ReadProblems
    )
)]
async fn artifact(
    State(context): State<ServerContext>,
    Path((id, number, name)): Path<(String, u32, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let found = context.with_run(id, move |run| async move {
        run.require_iteration(number)?;
        let directory = iteration_directory(&run.dir, &run.state, number)?;
        known_file(&directory, &name)
    });
    let path = found.await?;
    send_file(path, headers.get(header::RANGE)).await
}

/// Returns the path of a file that every iteration, or every iteration of an agent, has.
fn known_file(directory: &std::path::Path, name: &str) -> Result<PathBuf, Problem> {
    let transcripts = TranscriptFormat::ALL.map(TranscriptFormat::file_name);
    let mut names = RunDir::ARTIFACTS.into_iter().chain(transcripts);
    match names.find(|known| *known == name) {
        Some(name) => Ok(directory.join(name)),
        None => Err(missing("an iteration has no such file")),
    }
}

fn missing(detail: &str) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "unknown-artifact", detail)
}

/// Sends a file, or a range of it, in pieces.
async fn send_file(path: PathBuf, range: Option<&HeaderValue>) -> Result<Response, Problem> {
    let unreadable = |error: std::io::Error| {
        if error.kind() == std::io::ErrorKind::NotFound {
            return missing("this file is not written yet, or the iteration has none");
        }
        let detail = format!("cannot read a file of the iteration — {error}");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", detail)
    };
    let mut file = File::open(&path).await.map_err(unreadable)?;
    let length = file.metadata().await.map_err(unreadable)?.len();
    let wanted = range.map(|range| parse_range(range, length));
    let (status, start, end) = match wanted {
        None | Some(WantedRange::All) => (StatusCode::OK, 0, length),
        Some(WantedRange::Part { start, end }) => (StatusCode::PARTIAL_CONTENT, start, end),
        Some(WantedRange::Unsatisfiable) => {
            let detail = format!("the file has {length} bytes");
            let problem = Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, "invalid-range", detail);
            let headers = [(header::CONTENT_RANGE, format!("bytes */{length}"))];
            return Ok((headers, problem).into_response());
        }
    };
    file.seek(SeekFrom::Start(start))
        .await
        .map_err(unreadable)?;
    let pieces = stream::try_unfold(file.take(end - start), read_piece);
    let mut response = (status, Body::from_stream(pieces)).into_response();
    let headers = response.headers_mut();
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, text);
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CONTENT_LENGTH, (end - start).into());
    if status == StatusCode::PARTIAL_CONTENT {
        let last = end - 1;
        let value = HeaderValue::from_str(&format!("bytes {start}-{last}/{length}"));
        if let Ok(value) = value {
            headers.insert(header::CONTENT_RANGE, value);
        }
    }
    Ok(response)
}

async fn read_piece(mut file: Take<File>) -> std::io::Result<Option<(Bytes, Take<File>)>> {
    let mut piece = vec![0; PIECE_BYTES];
    let count = file.read(&mut piece).await?;
    piece.truncate(count);
    Ok((count > 0).then(|| (Bytes::from(piece), file)))
}

/// The part of a file that a request wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WantedRange {
    /// The header has another form, which is ignored.
    All,
    /// From `start` to before `end`.
    Part {
        start: u64,
        end: u64,
    },
    Unsatisfiable,
}

/// Parses a header with one range of bytes.
fn parse_range(header: &HeaderValue, length: u64) -> WantedRange {
    // A header with other characters has no range of bytes.
    let range = header.to_str().unwrap_or("").trim().strip_prefix("bytes=");
    let Some((first, last)) = range.and_then(|range| range.split_once('-')) else {
        return WantedRange::All;
    };
    let number = |text: &str| ralph_core::parse_value::<u64>(text.trim());
    match (number(first), number(last)) {
        (Some(start), _) if start >= length => WantedRange::Unsatisfiable,
        (Some(start), Some(last)) if last >= start => WantedRange::Part {
            start,
            end: last.saturating_add(1).min(length),
        },
        (Some(start), None) if last.trim().is_empty() => WantedRange::Part { start, end: length },
        (None, Some(0)) if first.trim().is_empty() => WantedRange::Unsatisfiable,
        (None, Some(_)) if first.trim().is_empty() && length == 0 => WantedRange::Unsatisfiable,
        (None, Some(count)) if first.trim().is_empty() => WantedRange::Part {
            start: length.saturating_sub(count),
            end: length,
        },
        (_, _) => WantedRange::All,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_part_of_the_file_or_rejected() {
        let parse = |text: &'static str| parse_range(&HeaderValue::from_static(text), 100);
        let part = |start, end| WantedRange::Part { start, end };
        for (text, range) in [
            ("bytes=0-9", part(0, 10)),
            ("bytes=90-", part(90, 100)),
            ("bytes=-10", part(90, 100)),
            ("bytes=-1000", part(0, 100)),
            ("bytes=99-5000", part(99, 100)),
            ("bytes=100-", WantedRange::Unsatisfiable),
            ("bytes=-0", WantedRange::Unsatisfiable),
            ("bytes=9-1", WantedRange::All),
            ("bytes=1-2,5-6", WantedRange::All),
            ("bytes=x-", WantedRange::All),
            ("lines=1-2", WantedRange::All),
        ] {
            assert_eq!(parse(text), range, "{text}");
        }
        let empty = parse_range(&HeaderValue::from_static("bytes=-5"), 0);
        assert_eq!(empty, WantedRange::Unsatisfiable);
    }
}
