//! Reads single fields of a reply and records each problem with its location in the JSON.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::path::WorkspacePath;

use super::error::ReplyProblems;
use super::limits::{MAX_PROSE_BYTES, MAX_TIMEOUT};
use super::text::{one_line, truncate_bytes};

/// The longest excerpt of a reply in an error, in characters.
const MAX_QUOTE_CHARS: usize = 40;

/// The longest description of an invalid path, in characters.
const MAX_PATH_ERROR_CHARS: usize = 160;

/// The fields of one object of the reply, and the list that collects their problems.
pub(super) struct ReplyFields<'v, 'p> {
    pub(super) map: &'v Map<String, Value>,
    pub(super) path: String,
    pub(super) problems: &'p mut ReplyProblems,
}

impl<'v> ReplyFields<'v, '_> {
    pub(super) fn problem(&mut self, name: &str, message: impl Into<String>) {
        let dot = if self.path.is_empty() { "" } else { "." };
        let path = format!("{}{dot}{name}", self.path);
        self.problems.add(path, message);
    }

    /// Reads an optional field; `null` counts as absent.
    pub(super) fn optional<T>(
        &mut self,
        name: &str,
        read: impl Fn(&'v Value) -> Result<T, String>,
    ) -> Option<T> {
        let value = self.map.get(name).filter(|value| !value.is_null())?;
        match read(value) {
            Ok(value) => Some(value),
            Err(message) => {
                self.problem(name, message);
                None
            }
        }
    }

    pub(super) fn required<T>(
        &mut self,
        name: &str,
        read: impl Fn(&'v Value) -> Result<T, String>,
    ) -> Option<T> {
        let Some(value) = self.map.get(name) else {
            self.problem(name, "is missing");
            return None;
        };
        match read(value) {
            Ok(value) => Some(value),
            Err(message) => {
                self.problem(name, message);
                None
            }
        }
    }

    /// Reads a text that an action uses verbatim: a command, diff, file content or commit message.
    pub(super) fn required_text(&mut self, name: &str, bytes: usize) -> Option<String> {
        self.required(name, |value| {
            let text = check_length(text(value)?, bytes)?;
            // Valid JSON but never intended: the model wrote the `\b` of a regular expression
            // with one backslash instead of two.
            if text.contains('\u{8}') {
                return Err(
                    "contains a backspace, which JSON writes as `\\b`; write `\\\\b` for a backslash followed by `b`"
                        .to_owned(),
                );
            }
            Ok(text)
        })
        .map(str::to_owned)
    }

    pub(super) fn allow_only(&mut self, names: &[&str]) {
        for name in self.map.keys() {
            if name != "type" && !names.contains(&name.as_str()) {
                let allowed = names.join(", ");
                let shown = one_line(name, MAX_QUOTE_CHARS);
                self.problem(
                    &shown,
                    format!("unknown field; this action accepts {allowed}"),
                );
            }
        }
    }
}

pub(super) fn text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| expected("a string", value))
}

pub(super) fn boolean(value: &Value) -> Result<bool, String> {
    value
        .as_bool()
        .ok_or_else(|| expected("true or false", value))
}

pub(super) fn list(value: &Value) -> Result<&[Value], String> {
    let list = value
        .as_array()
        .ok_or_else(|| expected("an array", value))?;
    Ok(list)
}

pub(super) fn object(value: &Value) -> Result<&Map<String, Value>, String> {
    value
        .as_object()
        .ok_or_else(|| expected("an object", value))
}

pub(super) fn workspace_path(value: &Value) -> Result<WorkspacePath, String> {
    WorkspacePath::parse(text(value)?)
        .map_err(|error| one_line(&error.to_string(), MAX_PATH_ERROR_CHARS))
}

/// Reads a directory; the repository root is `None`.
pub(super) fn directory(value: &Value) -> Result<Option<WorkspacePath>, String> {
    match text(value)? {
        "." | "./" => Ok(None),
        _ => workspace_path(value).map(Some),
    }
}

pub(super) fn seconds(value: &Value) -> Result<Duration, String> {
    let max = MAX_TIMEOUT.as_secs();
    let whole = value.as_f64().filter(|number| number.fract() == 0.0);
    let Some(number) = whole else {
        return Err(expected("a whole number of seconds", value));
    };
    match Duration::try_from_secs_f64(number) {
        Ok(timeout) if !timeout.is_zero() && timeout <= MAX_TIMEOUT => Ok(timeout),
        Ok(_) | Err(_) => Err(expected(&format!("1 to {max} seconds"), value)),
    }
}

pub(super) fn check_length(text: &str, bytes: usize) -> Result<&str, String> {
    if text.len() <= bytes {
        Ok(text)
    } else {
        let found = text.len();
        Err(format!("has {found} bytes, at most {bytes} are allowed"))
    }
}

pub(super) fn truncate_prose(text: &str) -> String {
    truncate_bytes(text, MAX_PROSE_BYTES).to_owned()
}

pub(super) fn quote(text: &str) -> String {
    format!("{:?}", one_line(text, MAX_QUOTE_CHARS))
}

fn expected(wanted: &str, found: &Value) -> String {
    let found = match found {
        Value::Null => "null".to_owned(),
        Value::Bool(found) => found.to_string(),
        Value::Number(found) => found.to_string(),
        Value::String(found) => quote(found),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    };
    format!("expected {wanted}, found {found}")
}
