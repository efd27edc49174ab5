//! Checks a response field by field, so that each error can name the place in the JSON.

use serde_json::{Map, Value};

use crate::path::WorkspacePath;
use crate::ports::WriteMode;

use super::error::Problems;
use super::fields::{
    Fields, directory, list, object, prose, quote, seconds, text, truth, within, workspace_path,
};
use super::kind::{Action, Claims};
use super::limits::{
    DEFAULT_TIMEOUT, MAX_ACTIONS, MAX_CLAIM_BYTES, MAX_CLAIMS, MAX_COMMAND_BYTES, MAX_COMMIT_PATHS,
    MAX_CONTENT_BYTES, MAX_MESSAGE_BYTES, MAX_PATCH_BYTES,
};

/// The content of a response that follows the contract.
pub(super) struct Checked {
    pub(super) summary: String,
    pub(super) actions: Vec<Action>,
    pub(super) claims: Claims,
}

/// Checks a whole response. Unknown keys beside the known ones are no problem, models like to add
/// their thoughts; unknown fields of an action are, since they would not be done.
pub(super) fn check(response: &Map<String, Value>) -> Result<Checked, Problems> {
    let mut problems = Problems::default();
    let mut root = Fields {
        map: response,
        path: String::new(),
        problems: &mut problems,
    };
    let summary = root.optional("summary", text).unwrap_or_default();
    let list = root.required("actions", list).unwrap_or_default();
    let claims = root.optional("claims", object);
    let checked = Checked {
        summary: prose(summary),
        actions: actions(list, &mut problems),
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

/// Reads all actions, so that all their problems are named.
fn actions(list: &[Value], problems: &mut Problems) -> Vec<Action> {
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
            Ok(map) => actions.extend(action(&mut Fields {
                map,
                path,
                problems,
            })),
            Err(message) => problems.add(path, message),
        }
    }
    actions
}

fn action(fields: &mut Fields<'_, '_>) -> Option<Action> {
    let kind = fields.required("type", text)?;
    match kind {
        "run" => {
            fields.allow_only(&["command", "cwd", "timeout_s"]);
            run(fields)
        }
        "patch" => {
            fields.allow_only(&["path", "patch"]);
            let path = fields.required("path", workspace_path);
            let diff = fields.limited("patch", MAX_PATCH_BYTES);
            Some(Action::Patch {
                path: path?,
                patch: diff?,
            })
        }
        "write" => {
            fields.allow_only(&["path", "content", "append"]);
            write(fields)
        }
        "commit" => {
            fields.allow_only(&["message", "paths"]);
            let message = fields.limited("message", MAX_MESSAGE_BYTES);
            let paths = commit_paths(fields);
            Some(Action::Commit {
                message: message?,
                paths,
            })
        }
        "rotate" => reason(fields).map(|reason| Action::Rotate { reason }),
        "pause" => reason(fields).map(|reason| Action::Pause { reason }),
        "stop_success" => reason(fields).map(|reason| Action::StopSuccess { reason }),
        "stop_failure" => reason(fields).map(|reason| Action::StopFailure { reason }),
        unknown => {
            let unknown = quote(unknown);
            fields.problem("type", format!(
                "unknown action {unknown}; known are run, patch, write, commit, rotate, pause, stop_success, stop_failure"
            ));
            None
        }
    }
}

fn run(fields: &mut Fields<'_, '_>) -> Option<Action> {
    let command = fields.limited("command", MAX_COMMAND_BYTES);
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

fn write(fields: &mut Fields<'_, '_>) -> Option<Action> {
    let path = fields.required("path", workspace_path);
    let content = fields.limited("content", MAX_CONTENT_BYTES);
    let append = fields.optional("append", truth);
    Some(Action::Write {
        path: path?,
        content: content?,
        mode: match append {
            Some(true) => WriteMode::Append,
            Some(false) | None => WriteMode::Replace,
        },
    })
}

/// Reads the paths of a commit. `.` among them means all changes, as an empty list does.
fn commit_paths(fields: &mut Fields<'_, '_>) -> Vec<WorkspacePath> {
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
    // One `None` is the root, and with it everything.
    paths.into_iter().collect::<Option<_>>().unwrap_or_default()
}

fn reason(fields: &mut Fields<'_, '_>) -> Option<String> {
    fields.allow_only(&["reason"]);
    fields.required("reason", text).map(prose)
}

fn read_claims(map: &Map<String, Value>, problems: &mut Problems) -> Claims {
    let mut fields = Fields {
        map,
        path: "claims".into(),
        problems,
    };
    Claims {
        checkboxes_checked: claimed(&mut fields, "checkboxes_checked"),
        milestones_completed: claimed(&mut fields, "milestones_completed"),
    }
}

/// Reads a list of claims, each once and without blanks around it. What they name is found out later,
/// with the task.
fn claimed(fields: &mut Fields<'_, '_>, name: &str) -> Vec<String> {
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
        match claim(value) {
            Ok(claim) if claim.is_empty() || claims.contains(&claim) => {}
            Ok(claim) => claims.push(claim),
            Err(message) => fields.problem(&format!("{name}[{index}]"), message),
        }
    }
    claims
}

/// Reads one claim: a text, or the number of a box.
fn claim(value: &Value) -> Result<String, String> {
    if let Some(number) = value.as_u64() {
        return Ok(number.to_string());
    }
    text(value)
        .and_then(|claim| within(claim.trim(), MAX_CLAIM_BYTES))
        .map(str::to_owned)
}
