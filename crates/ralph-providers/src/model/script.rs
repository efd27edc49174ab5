//! Parses the file of a scripted model strictly.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

/// Maximum script size.
const MAX_SCRIPT_BYTES: u64 = 64 * 1024 * 1024;

/// The longest delay that a line can request.
const MAX_DELAY: Duration = Duration::from_hours(1);

/// Why a script is invalid.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read script `{}`: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// The file exceeds the maximum size.
    #[error("script `{}` exceeds the limit of {} MiB", path.display(), MAX_SCRIPT_BYTES >> 20)]
    TooLarge { path: PathBuf },
    /// The file contains no replies.
    #[error("script `{}` is empty: it needs at least one line with `reply` or `error`", path.display())]
    Empty { path: PathBuf },
    /// A line of the file is invalid.
    #[error("script `{}`, line {line}: {why}", path.display())]
    Line {
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        why: String,
    },
    /// The run has used a line that the file no longer has.
    #[error("script `{}` no longer has the reply at `{used}` that the run has used: the file has changed", path.display())]
    Changed {
        path: PathBuf,
        /// The recorded source.
        used: String,
    },
}

/// One line of a script.
#[derive(Debug)]
pub(super) struct ScriptLine {
    /// Counted from 1.
    pub(super) number: usize,
    /// The pattern that the prompt must match.
    pub(super) when: Option<Regex>,
    /// The delay before the reply.
    pub(super) delay: Duration,
    pub(super) answer: ScriptAnswer,
}

/// The outcome of a script line.
#[derive(Debug, PartialEq)]
pub(super) enum ScriptAnswer {
    /// A reply, with its token usage.
    Reply {
        text: String,
        /// Missing counts are estimated.
        usage: ScriptUsage,
    },
    /// A failure as reported by a provider.
    Failure(ScriptFailure),
}

/// A simulated failure.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ScriptFailure {
    /// The HTTP status, or 0 for no response.
    pub(super) status: u16,
    /// The wait that the provider requests.
    pub(super) retry_after: Option<Duration>,
    /// Whether a usage limit is reached.
    pub(super) is_quota: bool,
}

/// The token usage of a scripted reply.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptUsage {
    #[serde(rename = "input_tokens")]
    pub(super) input: Option<u64>,
    #[serde(rename = "output_tokens")]
    pub(super) output: Option<u64>,
    #[serde(rename = "cache_read_tokens", default)]
    pub(super) cache_read: u64,
    #[serde(rename = "cache_write_tokens", default)]
    pub(super) cache_write: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScriptLine {
    reply: Option<Value>,
    usage: Option<ScriptUsage>,
    delay_ms: Option<u64>,
    error: Option<RawScriptFailure>,
    when: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScriptFailure {
    status: u16,
    retry_after: Option<f64>,
    #[serde(default)]
    quota: bool,
}

impl ScriptLine {
    /// Returns the name of this line in a reply's source.
    pub(super) fn source(&self) -> String {
        format!("line {}", self.number)
    }

    /// Returns whether this line matches a prompt.
    pub(super) fn matches(&self, prompt: &str) -> bool {
        self.when
            .as_ref()
            .is_none_or(|pattern| pattern.is_match(prompt))
    }
}

/// Reads a script; the result has at least one line.
pub(super) fn read_script(path: &Path) -> Result<Vec<ScriptLine>, ScriptError> {
    let bytes = read_bounded(path)?;
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = before.split(|byte| *byte == b'\n').count();
        line_error(path, line, "is not UTF-8".into())
    })?;
    let mut lines = Vec::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, line) in text.lines().enumerate() {
        let (number, line) = (index + 1, line.trim());
        if line.is_empty() || line.starts_with('#') || line.starts_with("//") {
            continue;
        }
        lines.push(parse_line(number, line).map_err(|why| line_error(path, number, why))?);
    }
    if lines.is_empty() {
        return Err(ScriptError::Empty { path: path.into() });
    }
    Ok(lines)
}

fn line_error(path: &Path, line: usize, why: String) -> ScriptError {
    let path = path.into();
    ScriptError::Line { path, line, why }
}

/// Opens a regular file. Opening a pipe would wait for a writer.
fn open_regular_file(path: &Path) -> io::Result<File> {
    if !path.metadata()?.is_file() {
        let why = "it is not a regular file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    File::open(path)
}

fn read_bounded(path: &Path) -> Result<Vec<u8>, ScriptError> {
    let mut bytes = Vec::new();
    open_regular_file(path)
        .and_then(|file| file.take(MAX_SCRIPT_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|source| ScriptError::Read {
            path: path.into(),
            source,
        })?;
    if bytes.len() as u64 > MAX_SCRIPT_BYTES {
        return Err(ScriptError::TooLarge { path: path.into() });
    }
    Ok(bytes)
}

/// Parses one line; the error names the violated rule.
fn parse_line(number: usize, line: &str) -> Result<ScriptLine, String> {
    if !line.starts_with('{') {
        return Err("is not a JSON object".into());
    }
    let raw: RawScriptLine =
        serde_json::from_str(line).map_err(|error| describe_json_error(&error))?;
    let when = raw.when.as_deref().map(Regex::new).transpose();
    let delay = Duration::from_millis(raw.delay_ms.unwrap_or(0)).min(MAX_DELAY);
    Ok(ScriptLine {
        number,
        when: when.map_err(|error| format!("`when` is not a regular expression: {error}"))?,
        delay,
        answer: parse_answer(raw.reply, raw.usage, raw.error)?,
    })
}

fn parse_answer(
    reply: Option<Value>,
    usage: Option<ScriptUsage>,
    failure: Option<RawScriptFailure>,
) -> Result<ScriptAnswer, String> {
    match (reply, failure) {
        (None, None) => Err("has neither `reply` nor `error`, but needs one of them".into()),
        (Some(_), Some(_)) => {
            Err("has both `reply` and `error`, but only one of them is allowed".into())
        }
        (Some(reply), None) => Ok(ScriptAnswer::Reply {
            text: reply_text(reply)?,
            usage: usage.unwrap_or_default(),
        }),
        (None, Some(_)) if usage.is_some() => {
            Err("has `usage` next to `error`: only a `reply` uses tokens".into())
        }
        (None, Some(failure)) => failure.validate(),
    }
}

/// Returns the text of a reply; an object is sent as its JSON text.
fn reply_text(reply: Value) -> Result<String, String> {
    match reply {
        Value::String(text) => Ok(text),
        Value::Object(_) => Ok(reply.to_string()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            Err("`reply` must be a string or an object".into())
        }
    }
}

impl RawScriptFailure {
    fn validate(self) -> Result<ScriptAnswer, String> {
        let status = self.status;
        if !matches!(status, 0 | 400..=599) {
            return Err(format!(
                "`error.status` is {status}, but must be 400 to 599, or 0 for no response"
            ));
        }
        let retry_after = self.retry_after.map(Duration::try_from_secs_f64);
        if self.quota && status != 429 {
            return Err(format!(
                "`error.quota` requires status 429, but `error.status` is {status}"
            ));
        }
        Ok(ScriptAnswer::Failure(ScriptFailure {
            status,
            retry_after: retry_after.transpose().map_err(|error| {
                format!("`error.retry_after` is not a time in seconds: {error}")
            })?,
            is_quota: self.quota,
        }))
    }
}

/// Describes a JSON error with its column; the parser's line number is always 1.
fn describe_json_error(error: &serde_json::Error) -> String {
    let (row, column) = (error.line(), error.column());
    let message = error.to_string();
    let message = message
        .strip_suffix(&format!(" at line {row} column {column}"))
        .unwrap_or(&message);
    format!("column {column}: {message}")
}

#[cfg(test)]
mod tests;
