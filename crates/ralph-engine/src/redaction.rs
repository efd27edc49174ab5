//! JSON without secrets: only string values are redacted, never keys or numbers, so that the output
//! stays valid.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use ralph_core::printable;
use ralph_core::secret::Redactor;
use serde::Serialize;
use serde_json::Value;

use crate::durable::StoreError;

/// Returns a value as one line of JSON for the file `path`, without secrets.
pub(crate) fn to_line(
    redactor: &Redactor,
    value: &impl Serialize,
    path: &Path,
) -> Result<String, StoreError> {
    let line = || {
        let line = serde_json::to_string(value)?;
        // Nearly every line has no secret, and searching the whole line is fast.
        if let Cow::Borrowed(_) = redactor.redact(&line) {
            return Ok(line);
        }
        serde_json::to_string(&redact_json(redactor, serde_json::to_value(value)?))
    };
    let line: serde_json::Result<String> = line();
    let line = line
        .map_err(io::Error::from)
        .map_err(StoreError::when("write", path))?;
    // Users print these files in terminals: no character may change the display of others.
    Ok(printable::escape_json(&line).into_owned() + "\n")
}

/// Returns a value as indented JSON for the file `path`, without secrets.
pub(crate) fn to_pretty(
    redactor: &Redactor,
    value: &impl Serialize,
    path: &Path,
) -> Result<Vec<u8>, StoreError> {
    let text = serde_json::to_value(value)
        .and_then(|value| serde_json::to_string_pretty(&redact_json(redactor, value)));
    text.map(|text| printable::escape_json(&text).into_owned().into_bytes())
        .map_err(io::Error::from)
        .map_err(StoreError::when("write", path))
}

/// Returns a value without secrets: only texts are redacted.
pub fn redact_json(redactor: &Redactor, value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(redactor.redact(&text).into_owned()),
        Value::Array(items) => items
            .into_iter()
            .map(|item| redact_json(redactor, item))
            .collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, item)| (name, redact_json(redactor, item)))
            .collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
    }
}

#[cfg(test)]
mod tests {
    use ralph_core::secret::Secret;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_values_are_redacted() {
        let secrets = ["4929123456781234", "iteration-9"]
            .map(|value| (value.to_owned(), Secret::new(value.to_owned())));
        let redactor = Redactor::new(secrets.into());
        let value = json!({"iteration-9": 4_929_123_456_781_234_u64, "text": ["in iteration-9 4929123456781234"], "none": null});
        let path = Path::new("x");
        let line = to_line(&redactor, &value, path).unwrap();
        assert_eq!(
            line,
            r#"{"iteration-9":4929123456781234,"text":["in [REDACTED:iteration-9] [REDACTED:4929123456781234]"],"none":null}"#.to_owned() + "\n"
        );
        let clean = json!({"a": 1});
        assert_eq!(to_line(&redactor, &clean, path).unwrap(), "{\"a\":1}\n");
    }
}
