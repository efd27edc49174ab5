//! `/runs/{id}/files/{path}`: reads and replaces files of the workspace.
//!
//! The run's own files are those of the host. All others are read from the sandbox, redacted; the
//! process that works on the run replaces them, and compares them with the version that the user saw.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use ralph_app::AppError;
use ralph_app::results::{WorkspaceFileError, WorkspaceSource, open_workspace};
use ralph_app::steering::propose_edit;
use ralph_core::action::rules::{refuse_edit, refuse_read};
use ralph_core::id::Digest;
use ralph_core::path::WorkspacePath;
use ralph_core::run::{Command, FileEdit};
use ralph_engine::inspect::MAX_FILE_BYTES;
use ralph_engine::workspace::FILE_OWNERS;
use ralph_engine::{contract, durable, edits};
use serde::{Deserialize, Serialize};
use utoipa::{OpenApi, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use super::etag::{ETagged, FileVersion, WriteCondition};
use super::send::{CommandEffect, require_accepted, send};
use crate::api::problem_responses::{ReadProblems, WriteProblems};
use crate::context::ServerContext;
use crate::problem::Problem;
use crate::run_access::RunAccess;

/// The task of a run, as a path of the workspace.
const TASK: &str = "ralph_task.md";

/// The description of the routes. Descriptions have no way to say that a path may contain slashes.
#[derive(OpenApi)]
#[openapi(paths(file, replace))]
struct FileRoutes;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::with_openapi(FileRoutes::openapi())
        .route("/runs/{id}/files/{*path}", get(file).put(replace))
}

/// A file of the workspace.
#[derive(Debug, Serialize, ToSchema)]
struct ShownFile {
    path: String,
    source: WorkspaceSource,
    /// Empty for a binary file.
    text: String,
    /// The size of the file, in bytes.
    bytes: u64,
    binary: bool,
    /// Whether secrets were removed from the text; such a file cannot be replaced.
    redacted: bool,
}

/// A file as it is.
struct FileContent {
    source: WorkspaceSource,
    bytes: Vec<u8>,
}

/// Returns a file of at most 4 MiB.
#[utoipa::path(
    get,
    path = "/runs/{id}/files/{path}",
    tag = "workspace",
    params(
        ("id" = String, Path, description = "The id of the run."),
        ("path" = String, Path, description = "Relative to the repository's root; slashes may be encoded."),
    ),
    responses(
        (status = 200, body = ShownFile, headers(("ETag" = String, description = "The version of the file."))),
        (status = 413, body = Problem, content_type = "application/problem+json"),
        ReadProblems
    )
)]
async fn file(
    State(context): State<ServerContext>,
    Path((id, path)): Path<(String, String)>,
) -> Result<ETagged<ShownFile>, Problem> {
    let path = parse_path(&path)?;
    let read = context.with_run(id, |run| async move {
        if let Some(why) = refuse_read(&path) {
            return Err(Problem::new(StatusCode::FORBIDDEN, "forbidden-path", why));
        }
        let FileContent { source, bytes } = read(&run, &path).await?;
        let version = FileVersion::of(&bytes);
        let binary = bytes.contains(&0);
        let text = if binary {
            String::new()
        } else {
            run.redacted(&bytes)
        };
        Ok(ETagged {
            version,
            body: ShownFile {
                path: path.to_string(),
                source,
                redacted: !binary && text.as_bytes() != String::from_utf8_lossy(&bytes).as_bytes(),
                text,
                bytes: bytes.len() as u64,
                binary,
            },
        })
    });
    read.await
}

/// A new content of a file.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewContent {
    /// At most 1 MiB.
    text: String,
}

/// Replaces or creates a file at the next action: `.ralph/notes.md`, or a file of the repository. It
/// needs the mode `guided` or `debug`.
#[utoipa::path(
    put,
    path = "/runs/{id}/files/{path}",
    tag = "workspace",
    params(
        ("id" = String, Path, description = "The id of the run."),
        ("path" = String, Path, description = "Relative to the repository's root; slashes may be encoded."),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the file that was read."),
        ("If-None-Match" = Option<String>, Header, description = "`*`: the file must not exist."),
    ),
    request_body = NewContent,
    responses(
        (status = 200, body = CommandEffect),
        (status = 202, body = CommandEffect),
        WriteProblems
    )
)]
async fn replace(
    State(context): State<ServerContext>,
    Path((id, path)): Path<(String, String)>,
    headers: HeaderMap,
    Json(new): Json<NewContent>,
) -> Result<Response, Problem> {
    let path = parse_path(&path)?;
    let condition = WriteCondition::from_headers(&headers)?;
    let replaced = context.with_run(id, move |run| async move {
        if let Some(why) = refuse_edit(&path) {
            return Err(Problem::new(StatusCode::FORBIDDEN, "forbidden-path", why));
        }
        let digest = Digest::compute(new.text.as_bytes());
        let edit = |replaces| FileEdit {
            path: path.clone(),
            content: digest.clone(),
            replaces,
        };
        require_accepted(&run, &Command::Edit(edit(None)))?;
        let replaces = checked_version(&run, &path, (&condition, &new.text)).await?;
        let edit = propose_edit(&run.dir, path, (new.text.as_bytes(), replaces), &run.app)?;
        let version = FileVersion(edit.content.clone());
        let effect = send(&run, Command::Edit(edit), None).await;
        Ok((version, effect.map_err(changed_meanwhile)?))
    });
    let (version, effect) = replaced.await?;
    let tag = [(header::ETAG, version.entity_tag())];
    Ok((tag, effect).into_response())
}

/// Returns the version that the edit replaces, if it meets the condition.
async fn checked_version(
    run: &RunAccess,
    path: &WorkspacePath,
    (condition, wanted): (&WriteCondition, &str),
) -> Result<Option<Digest>, Problem> {
    let current = match read(run, path).await {
        Ok(content) => Some(content.bytes),
        Err(problem) if problem.status == StatusCode::NOT_FOUND.as_u16() => None,
        Err(problem) => return Err(problem),
    };
    let version = current.as_deref().map(FileVersion::of);
    let shown = current.as_deref().map(|bytes| run.redacted(bytes));
    let shown = shown.unwrap_or_default();
    condition.check(version.as_ref(), (&shown, wanted))?;
    if let Some(bytes) = &current
        && shown.as_bytes() != bytes.as_slice()
    {
        let detail = "the file contains a secret or is not a text, so it cannot be replaced";
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "forbidden-file",
            detail,
        ));
    }
    Ok(version.map(|version| version.0))
}

/// Turns the failure of an edit whose file changed after it was sent into a failed condition.
fn changed_meanwhile(problem: Problem) -> Problem {
    if problem.detail.ends_with(edits::CHANGED) {
        return Problem::new(
            StatusCode::PRECONDITION_FAILED,
            "stale-version",
            problem.detail,
        )
        .with_hint("read it again and apply your change to the new content");
    }
    problem
}

/// Parses the path of a request. A path that is encoded twice is rejected, whatever it leads to.
fn parse_path(text: &str) -> Result<WorkspacePath, Problem> {
    let invalid = |detail: String| Problem::new(StatusCode::BAD_REQUEST, "invalid-path", detail);
    let lower = text.to_ascii_lowercase();
    if ["%2e", "%2f", "%5c", "%00", "%25"]
        .iter()
        .any(|code| lower.contains(code))
    {
        return Err(invalid("the path is encoded twice".to_owned()));
    }
    WorkspacePath::parse(text).map_err(|error| invalid(error.to_string()))
}

/// Reads a file: the host's copy of a file of the run, or a file of the repository.
async fn read(run: &RunAccess, path: &WorkspacePath) -> Result<FileContent, Problem> {
    if path.as_str() == TASK {
        let task = contract::load_contract(&run.dir, &run.state.contract).map_err(|error| {
            let what = format!("cannot read the task of run `{}`", run.id());
            AppError::runtime(what, error.to_string(), error.hint())
        })?;
        return Ok(FileContent {
            source: WorkspaceSource::Host,
            bytes: task.with_ticks(&run.state.ticked).into_bytes(),
        });
    }
    if let Some(name) = path.as_str().strip_prefix(".ralph/")
        && FILE_OWNERS.iter().any(|(known, _)| *known == name)
    {
        return host_copy(run, name);
    }
    let workspace = open_workspace(&run.dir, &run.state, &run.app).await?;
    let bytes = workspace
        .read_file(path)
        .await
        .map_err(|error| match error {
            WorkspaceFileError::NotFound => {
                let detail = format!("there is no file `{path}`");
                Problem::new(StatusCode::NOT_FOUND, "unknown-file", detail)
            }
            WorkspaceFileError::Refused(why) => {
                Problem::new(StatusCode::FORBIDDEN, "forbidden-file", why)
            }
            WorkspaceFileError::TooLarge(why) => {
                Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "large-file", why)
            }
            WorkspaceFileError::App(error) => error.into(),
        })?;
    Ok(FileContent {
        source: workspace.source(),
        bytes,
    })
}

fn host_copy(run: &RunAccess, name: &str) -> Result<FileContent, Problem> {
    let path = run.dir.file(name);
    let length = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
    if length > MAX_FILE_BYTES {
        let detail = format!("`{name}` has {length} bytes, at most {MAX_FILE_BYTES} are read");
        return Err(
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "large-file", detail)
                .with_hint("read it in parts, from `/logs`"),
        );
    }
    let bytes = durable::read_if_present(&path).map_err(AppError::from)?;
    let bytes = bytes.ok_or_else(|| {
        let detail = format!("the run has no file `{name}`");
        Problem::new(StatusCode::NOT_FOUND, "unknown-file", detail)
    })?;
    Ok(FileContent {
        source: WorkspaceSource::Host,
        bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_lead_outside_are_rejected() {
        for path in [
            "../x",
            "a/../../x",
            "/etc/passwd",
            "",
            ".",
            "a\0b",
            "C:/x",
            "a\\b",
            "%2e%2e/x",
            "..%2fx",
            "%252e%252e%252fx",
            "a%00",
            "a%5cb",
        ] {
            assert_eq!(parse_path(path).unwrap_err().status, 400, "{path:?}");
        }
        assert_eq!(parse_path("src/100%.rs").unwrap().as_str(), "src/100%.rs");
    }
}
