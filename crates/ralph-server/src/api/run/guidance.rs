//! `/runs/{id}/guardrails`, `/notes` and `/messages`: texts of the user for later prompts.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use ralph_app::AppError;
use ralph_app::runs::MessageEntry;
use ralph_core::advice::{Guardrail, Note, NoteKind};
use ralph_core::run::Command;
use ralph_engine::durable;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::etag::{ETagged, FileVersion};
use super::send::{CommandEffect, idempotency_key, send};
use crate::api::problem_responses::{CommandProblems, ReadProblems};
use crate::context::ServerContext;
use crate::problem::Problem;
use crate::run_access::RunAccess;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new()
        .routes(routes!(guardrails, add_guardrail))
        .routes(routes!(notes, add_note))
        .routes(routes!(messages, send_message))
}

/// A text file of a run, in Markdown.
#[derive(Debug, Serialize, ToSchema)]
struct GuidanceText {
    text: String,
}

/// Returns the guardrails of a run.
#[utoipa::path(
    get,
    path = "/runs/{id}/guardrails",
    tag = "steering",
    params(("id" = String, Path, description = "The id of the run.")),
    responses((status = 200, body = GuidanceText), ReadProblems)
)]
async fn guardrails(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
) -> Result<ETagged<GuidanceText>, Problem> {
    let read = context.with_run(
        id,
        |run| async move { guidance_text(&run, "guardrails.md") },
    );
    read.await
}

/// Returns the notes of a run.
#[utoipa::path(
    get,
    path = "/runs/{id}/notes",
    tag = "steering",
    params(("id" = String, Path, description = "The id of the run.")),
    responses((status = 200, body = GuidanceText), ReadProblems)
)]
async fn notes(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
) -> Result<ETagged<GuidanceText>, Problem> {
    let read = context.with_run(id, |run| async move { guidance_text(&run, "notes.md") });
    read.await
}

fn guidance_text(run: &RunAccess, name: &str) -> Result<ETagged<GuidanceText>, Problem> {
    let bytes = durable::read_if_present(&run.dir.file(name)).map_err(AppError::from)?;
    let bytes = bytes.unwrap_or_default();
    Ok(ETagged {
        version: FileVersion::of(&bytes),
        body: GuidanceText {
            text: run.redacted(&bytes),
        },
    })
}

/// A new guardrail.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewGuardrail {
    name: String,
    /// The situation in which the mistake tends to happen.
    trigger: String,
    /// The correct behaviour in that situation.
    instruction: String,
    #[serde(default)]
    evidence: String,
}

/// Adds a guardrail, before the next iteration.
#[utoipa::path(
    post,
    path = "/runs/{id}/guardrails",
    tag = "steering",
    params(
        ("id" = String, Path, description = "The id of the run."),
        ("Idempotency-Key" = Option<String>, Header, description = "Repeats of the request add nothing."),
    ),
    request_body = NewGuardrail,
    responses(
        (status = 200, body = CommandEffect),
        (status = 202, body = CommandEffect),
        CommandProblems
    )
)]
async fn add_guardrail(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Json(new): Json<NewGuardrail>,
) -> Result<CommandEffect, Problem> {
    let command = Command::Guardrail(Guardrail {
        name: new.name,
        trigger: new.trigger,
        instruction: new.instruction,
        evidence: new.evidence,
    });
    send_with_key(&context, id, &headers, command).await
}

/// A new note.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewNote {
    kind: NoteKind,
    /// The hint, in one line.
    text: String,
    #[serde(default)]
    author: String,
}

/// Adds a note, at the next action.
#[utoipa::path(
    post,
    path = "/runs/{id}/notes",
    tag = "steering",
    params(
        ("id" = String, Path, description = "The id of the run."),
        ("Idempotency-Key" = Option<String>, Header, description = "Repeats of the request add nothing."),
    ),
    request_body = NewNote,
    responses(
        (status = 200, body = CommandEffect),
        (status = 202, body = CommandEffect),
        CommandProblems
    )
)]
async fn add_note(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Json(new): Json<NewNote>,
) -> Result<CommandEffect, Problem> {
    let command = Command::Note(Note {
        kind: new.kind,
        text: new.text,
        author: new.author,
    });
    send_with_key(&context, id, &headers, command).await
}

/// The messages of the user, oldest first.
#[derive(Debug, Serialize, ToSchema)]
struct MessageList {
    messages: Vec<MessageEntry>,
}

/// Returns the messages that wait, and the last ones that were acknowledged.
#[utoipa::path(
    get,
    path = "/runs/{id}/messages",
    tag = "steering",
    params(("id" = String, Path, description = "The id of the run.")),
    responses((status = 200, body = MessageList), ReadProblems)
)]
async fn messages(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
) -> Result<Json<MessageList>, Problem> {
    let read = context.with_run(id, |run| async move {
        let entry = |message: &ralph_core::state::Message| MessageEntry {
            text: run.redacted(message.text.as_bytes()),
            ..MessageEntry::from(message)
        };
        Ok(MessageList {
            messages: run.state.messages.iter().map(entry).collect(),
        })
    });
    Ok(Json(read.await?))
}

/// A message to the agent or model.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewMessage {
    /// At most 8 KiB.
    text: String,
}

/// Sends a message to the agent or model.
#[utoipa::path(
    post,
    path = "/runs/{id}/messages",
    tag = "steering",
    params(
        ("id" = String, Path, description = "The id of the run."),
        ("Idempotency-Key" = Option<String>, Header, description = "Repeats of the request send nothing."),
    ),
    request_body = NewMessage,
    responses(
        (status = 200, body = CommandEffect),
        (status = 202, body = CommandEffect),
        CommandProblems
    )
)]
async fn send_message(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Json(new): Json<NewMessage>,
) -> Result<CommandEffect, Problem> {
    send_with_key(&context, id, &headers, Command::Message { text: new.text }).await
}

async fn send_with_key(
    context: &ServerContext,
    id: String,
    headers: &HeaderMap,
    command: Command,
) -> Result<CommandEffect, Problem> {
    let key = idempotency_key(headers)?;
    let sent = context.with_run(id, move |run| async move {
        send(&run, command, key.as_deref()).await
    });
    sent.await
}
