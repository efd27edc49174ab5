//! Validates a reply field by field, so that each error names its location in the JSON.

use serde_json::{Map, Value};

use crate::path::WorkspacePath;
use crate::ports::WriteMode;

use super::error::ReplyProblems;
use super::fields::{
    ReplyFields, boolean, check_length, directory, list, object, quote, seconds, text,
    truncate_prose, workspace_path,
};
use super::kind::{Action, Claims};
use super::limits::{
    DEFAULT_TIMEOUT, MAX_ACTIONS, MAX_CLAIM_BYTES, MAX_CLAIMS, MAX_COMMAND_BYTES, MAX_COMMIT_PATHS,
    MAX_CONTENT_BYTES, MAX_MESSAGE_BYTES, MAX_PATCH_BYTES,
};

/// The content of a valid reply.
pub(super) struct CheckedReply {
    pub(super) summary: String,
    pub(super) actions: Vec<Action>,
    pub(super) claims: Claims,
}

/// Validates a whole reply. Accepts unknown top-level keys, because models often add their
/// reasoning; rejects unknown fields of an action, because ignoring them would change its meaning.
pub(super) fn check(response: &Map<String, Value>) -> Result<CheckedReply, ReplyProblems> {
    let mut problems = ReplyProblems::default();
    let mut root = ReplyFields {
        map: response,
        path: String::new(),
        problems: &mut problems,
    };
    let summary = root.optional("summary", text).unwrap_or_default();
    let list = root.required("actions", list).unwrap_or_default();
    let claims = root.optional("claims", object);
    let checked = CheckedReply {
        summary: truncate_prose(summary),
        actions: read_actions(list, &mut problems),
        claims: claims
            .map(|map| read_claims(map, &mut problems))
            .unwrap_or_default(),
    };
    if problems.is_empty() {
        Ok(checked)
    } else {
        Err(problems)
    }
}

/// Reads all actions, even after an invalid one, so that all problems are reported.
fn read_actions(list: &[Value], problems: &mut ReplyProblems) -> Vec<Action> {
    if list.len() > MAX_ACTIONS {
        let found = list.len();
        problems.add(
            "actions",
            format!("has {found} entries, at most {MAX_ACTIONS} are allowed"),
        );
        return Vec::new();
    }
    let mut actions = Vec::new();
    for (index, value) in list.iter().enumerate() {
        let path = format!("actions[{index}]");
        match object(value) {
            Ok(map) => actions.extend(read_action(&mut ReplyFields {
                map,
                path,
                problems,
            })),
            Err(message) => problems.add(path, message),
        }
    }
    actions
}

fn read_action(fields: &mut ReplyFields<'_, '_>) -> Option<Action> {
    let kind = fields.required("type", text)?;
    match kind {
        "run" => {
            fields.allow_only(&["command", "cwd", "timeout_s"]);
            read_run(fields)
        }
        "patch" => {
            fields.allow_only(&["path", "patch"]);
            let path = fields.required("path", workspace_path);
            let diff = fields.required_text("patch", MAX_PATCH_BYTES);
            Some(Action::Patch {
                path: path?,
                patch: diff?,
            })
        }
        "write" => {
            fields.allow_only(&["path", "content", "append"]);
            read_write(fields)
        }
        "commit" => {
            fields.allow_only(&["message", "paths"]);
            let message = fields.required_text("message", MAX_MESSAGE_BYTES);
            let paths = read_commit_paths(fields);
            Some(Action::Commit {
                message: message?,
                paths,
            })
        }
        "rotate" => read_reason(fields).map(|reason| Action::Rotate { reason }),
        "pause" => read_reason(fields).map(|reason| Action::Pause { reason }),
        "stop_success" => read_reason(fields).map(|reason| Action::StopSuccess { reason }),
        "stop_failure" => read_reason(fields).map(|reason| Action::StopFailure { reason }),
        unknown => {
            let unknown = quote(unknown);
            fields.problem("type", format!(
                "unknown action {unknown}; valid actions are run, patch, write, commit, rotate, pause, stop_success, stop_failure"
            ));
            None
        }
    }
}

fn read_run(fields: &mut ReplyFields<'_, '_>) -> Option<Action> {
    let command = fields.required_text("command", MAX_COMMAND_BYTES);
    if let Some(command) = &command {
        if command.trim().is_empty() {
            fields.problem("command", "is empty");
        } else if command.contains('\0') {
            fields.problem("command", "contains a NUL character");
        }
    }
    let cwd = fields.optional("cwd", directory);
    let timeout = fields.optional("timeout_s", seconds);
    Some(Action::Run {
        command: command?,
        cwd: cwd.flatten(),
        timeout: timeout.unwrap_or(DEFAULT_TIMEOUT),
    })
}

fn read_write(fields: &mut ReplyFields<'_, '_>) -> Option<Action> {
    let path = fields.required("path", workspace_path);
    let content = fields.required_text("content", MAX_CONTENT_BYTES);
    let append = fields.optional("append", boolean);
    Some(Action::Write {
        path: path?,
        content: content?,
        mode: match append {
            Some(true) => WriteMode::Append,
            Some(false) | None => WriteMode::Replace,
        },
    })
}

/// Reads the paths of a commit. A `.` means all changes, like an empty list.
fn read_commit_paths(fields: &mut ReplyFields<'_, '_>) -> Vec<WorkspacePath> {
    let list = fields.optional("paths", list).unwrap_or_default();
    if list.len() > MAX_COMMIT_PATHS {
        let found = list.len();
        fields.problem(
            "paths",
            format!("has {found} entries, at most {MAX_COMMIT_PATHS} are allowed; leave it out to commit all changes"),
        );
        return Vec::new();
    }
    let mut paths = Vec::new();
    for (index, value) in list.iter().enumerate() {
        match directory(value) {
            Ok(path) => paths.push(path),
            Err(message) => fields.problem(&format!("paths[{index}]"), message),
        }
    }
    // `None` is the root, so a single one selects everything.
    paths.into_iter().collect::<Option<_>>().unwrap_or_default()
}

fn read_reason(fields: &mut ReplyFields<'_, '_>) -> Option<String> {
    fields.allow_only(&["reason"]);
    fields.required("reason", text).map(truncate_prose)
}

fn read_claims(map: &Map<String, Value>, problems: &mut ReplyProblems) -> Claims {
    let mut fields = ReplyFields {
        map,
        path: "claims".into(),
        problems,
    };
    Claims {
        checkboxes_checked: read_claim_list(&mut fields, "checkboxes_checked"),
        milestones_completed: read_claim_list(&mut fields, "milestones_completed"),
    }
}

/// Reads a list of claims, trimmed and without duplicates. The task resolves them later.
fn read_claim_list(fields: &mut ReplyFields<'_, '_>, name: &str) -> Vec<String> {
    let list = fields.optional(name, list).unwrap_or_default();
    if list.len() > MAX_CLAIMS {
        let found = list.len();
        fields.problem(
            name,
            format!("has {found} entries, at most {MAX_CLAIMS} are allowed"),
        );
        return Vec::new();
    }
    let mut claims: Vec<String> = Vec::new();
    for (index, value) in list.iter().enumerate() {
        match read_claim(value) {
            Ok(claim) if claim.is_empty() || claims.contains(&claim) => {}
            Ok(claim) => claims.push(claim),
            Err(message) => fields.problem(&format!("{name}[{index}]"), message),
        }
    }
    claims
}

/// Reads one claim: a text, or the number of a checkbox.
fn read_claim(value: &Value) -> Result<String, String> {
    if let Some(number) = value.as_u64() {
        return Ok(number.to_string());
    }
    text(value)
        .and_then(|claim| check_length(claim.trim(), MAX_CLAIM_BYTES))
        .map(str::to_owned)
}
