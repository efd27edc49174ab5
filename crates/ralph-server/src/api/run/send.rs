//! Sends the command of a request to a run, and turns a rejection into a problem.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use ralph_app::steering::{self, CommandRejection, SentCommandOutcome, command_rejection};
use ralph_core::run::Command;
use serde::Serialize;
use utoipa::ToSchema;

use crate::problem::Problem;
use crate::run_access::RunAccess;

/// The header that makes a repeated request harmless.
pub(super) const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The longest key, in bytes.
const MAX_KEY_BYTES: usize = 255;

/// The requests with a key that are in progress.
static KEYS_IN_USE: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The effect of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct CommandEffect {
    pub(super) command: &'static str,
    /// Whether it took effect; otherwise it is accepted and takes effect later.
    pub(super) done: bool,
    /// The effect in one sentence.
    pub(super) effect: String,
    /// The end of the output of a debug command; empty for others.
    pub(super) output: String,
}

impl IntoResponse for CommandEffect {
    fn into_response(self) -> Response {
        let status = if self.done {
            StatusCode::OK
        } else {
            StatusCode::ACCEPTED
        };
        (status, Json(self)).into_response()
    }
}

/// Rejects a command that the run does not accept now.
pub(in crate::api) fn require_accepted(run: &RunAccess, command: &Command) -> Result<(), Problem> {
    let Some(rejection) = command_rejection(&run.dir, &run.state, command) else {
        return Ok(());
    };
    let (status, kind) = match &rejection {
        CommandRejection::Mode(_) => (StatusCode::FORBIDDEN, "forbidden-by-mode"),
        CommandRejection::Status(_) => (StatusCode::CONFLICT, "not-allowed"),
        CommandRejection::Content(_) => rejected_content(command),
    };
    let error = steering::refused_error(&run.state, command, rejection.reason());
    let detail = format!("{} — {}", error.what, error.why);
    Err(run.with_allowed(Problem::new(status, kind, detail).with_hint(error.fix)))
}

/// Returns the status of a command whose content the run rejects.
fn rejected_content(command: &Command) -> (StatusCode, &'static str) {
    match command {
        Command::Note(_)
        | Command::Guardrail(_)
        | Command::Message { .. }
        | Command::Answer { .. }
        | Command::AllowHost { .. }
        | Command::Limits(_) => (StatusCode::UNPROCESSABLE_ENTITY, "invalid-request"),
        Command::Edit(_) => (StatusCode::FORBIDDEN, "forbidden-path"),
        Command::Pause
        | Command::Resume
        | Command::Rotate
        | Command::Stop
        | Command::Profile { .. }
        | Command::Task { .. }
        | Command::Diagnose
        | Command::Apply
        | Command::Debug { .. }
        | Command::Mode { .. } => (StatusCode::CONFLICT, "not-allowed"),
    }
}

/// Sends a command to a run, once per key if the request has one.
pub(super) async fn send(
    run: &RunAccess,
    command: Command,
    key: Option<&str>,
) -> Result<CommandEffect, Problem> {
    if !command.needs_execution() {
        require_accepted(run, &command)?;
        let report = steering::steer(run.id().as_str(), &command, &run.app).await?;
        return Ok(CommandEffect {
            command: command.verb(),
            done: true,
            effect: report.effect,
            output: String::new(),
        });
    }
    let sent = if let Some(key) = key {
        send_once(run, &command, key).await?
    } else {
        require_accepted(run, &command)?;
        Box::pin(steering::send_command(&run.dir, command.clone(), &run.app)).await?
    };
    let command_name = command.verb();
    match sent {
        SentCommandOutcome::Done(done) if done.succeeded => Ok(CommandEffect {
            command: command_name,
            done: true,
            effect: run.redacted(done.detail.as_bytes()),
            output: run.redacted(done.output.as_bytes()),
        }),
        SentCommandOutcome::Done(done) => Err(failed(run, &command, &done.detail)),
        SentCommandOutcome::Deferred => Ok(CommandEffect {
            command: command_name,
            done: false,
            effect: command.effect(run.state.plan.agent.is_some()),
            output: String::new(),
        }),
    }
}

/// Returns the problem of a command that was accepted and failed.
fn failed(run: &RunAccess, command: &Command, why: &str) -> Problem {
    let error = steering::command_failed(&run.state, command.verb(), why);
    let detail = format!("{} — {}", error.what, error.why);
    Problem::new(StatusCode::CONFLICT, "command-failed", detail).with_hint(error.fix)
}

async fn send_once(
    run: &RunAccess,
    command: &Command,
    key: &str,
) -> Result<SentCommandOutcome, Problem> {
    let _key = KeyInUse::take(format!("{}/{key}", run.id()))?;
    let sent = steering::find_keyed_command(key, &run.dir)?;
    match sent {
        Some((earlier, outcome)) if earlier == *command => return Ok(outcome),
        Some(_) => {
            return Err(Problem::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "reused-key",
                "another request was sent with this `Idempotency-Key`",
            )
            .with_hint("send each request with a key of its own"));
        }
        None => {}
    }
    require_accepted(run, command)?;
    let sent = steering::send_keyed_command(key, &run.dir, command.clone(), &run.app);
    Ok(Box::pin(sent).await?)
}

/// Returns the `Idempotency-Key` of a request.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else {
        return Ok(None);
    };
    match value.to_str() {
        Ok(key) if !key.trim().is_empty() && key.len() <= MAX_KEY_BYTES => {
            Ok(Some(key.trim().to_owned()))
        }
        Ok(_) | Err(_) => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "invalid-key",
            format!("`Idempotency-Key` must have 1 to {MAX_KEY_BYTES} printable characters"),
        )),
    }
}

/// A key of a request in progress; given back on drop.
struct KeyInUse(String);

impl KeyInUse {
    fn take(key: String) -> Result<Self, Problem> {
        let mut keys = KEYS_IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        if !keys.insert(key.clone()) {
            return Err(Problem::new(
                StatusCode::CONFLICT,
                "request-in-progress",
                "a request with this `Idempotency-Key` is in progress",
            )
            .with_hint("try again when it has ended"));
        }
        Ok(Self(key))
    }
}

impl Drop for KeyInUse {
    fn drop(&mut self) {
        let mut keys = KEYS_IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        keys.remove(&self.0);
    }
}
