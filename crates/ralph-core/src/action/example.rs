//! Recognises examples of the reply format, which models often repeat before they answer.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::contract::SCHEMA_TEXT;
use super::lexer::ReplyToken;

/// The action fields in which a placeholder such as `<path>` marks an example.
const FIELDS: [&str; 5] = ["type", "command", "path", "patch", "message"];

/// Returns whether an answer is the prompt's example or contains placeholders instead of values.
pub(super) fn is_example(answer: &Map<String, Value>) -> bool {
    let Some(Value::Array(actions)) = answer.get("actions") else {
        return false;
    };
    is_prompt_example(answer) || actions.iter().any(has_placeholder)
}

/// Returns whether the tokens contain an omission or alternatives, such as `...` or
/// `"run" | "patch"`, which no real value does.
pub(super) fn has_omissions(tokens: &[ReplyToken<'_>]) -> bool {
    tokens.iter().any(|token| match token {
        ReplyToken::Word(word) => word.len() > 1 && word.bytes().all(|byte| byte == b'.'),
        ReplyToken::Junk(c) => matches!(c, '…' | '|' | '<' | '>'),
        ReplyToken::Open(_)
        | ReplyToken::Close(_)
        | ReplyToken::Comma
        | ReplyToken::Colon
        | ReplyToken::Text(_) => false,
    })
}

/// Returns whether the actions are exactly those of the prompt's example.
fn is_prompt_example(answer: &Map<String, Value>) -> bool {
    static EXAMPLE: LazyLock<Option<Map<String, Value>>> = LazyLock::new(|| {
        let (_, json) = SCHEMA_TEXT.split_once("\n\n{")?;
        let (json, _) = json.split_once("\n}\n")?;
        let json = format!("{{{json}}}");
        Some(serde_json::from_str(&json).expect("the example is valid JSON"))
    });
    EXAMPLE
        .as_ref()
        .is_some_and(|example| answer.get("actions") == example.get("actions"))
}

fn has_placeholder(action: &Value) -> bool {
    let text = |field: &str| action.get(field).and_then(Value::as_str);
    let mut values = FIELDS.into_iter().filter_map(text);
    // Real content may look like `<path>`, for example in an HTML file.
    let is_omitted = |text: &str| is_ellipsis(text.trim());
    values.any(|text| is_placeholder(text.trim()))
        || text("content").is_some_and(is_omitted)
        || text("type").is_some_and(|kind| kind.contains('|'))
}

fn is_ellipsis(text: &str) -> bool {
    matches!(text, "..." | "…")
}

/// Returns whether a value is `...`, or a name in angle brackets such as `<path>`.
fn is_placeholder(text: &str) -> bool {
    let name = text
        .strip_prefix('<')
        .and_then(|text| text.strip_suffix('>'));
    let is_name = |name: &str| {
        let allowed = |c: char| c.is_alphanumeric() || " _-./|…".contains(c);
        !name.is_empty() && name.chars().all(allowed)
    };
    is_ellipsis(text) || name.is_some_and(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_the_example_of_the_prompt() {
        let (_, json) = SCHEMA_TEXT.split_once("\n\n").unwrap();
        let (json, _) = json.split_once("\n\n").unwrap();
        assert!(is_example(&serde_json::from_str(json).unwrap()), "{json}");
    }

    #[test]
    fn recognises_placeholders() {
        for text in ["...", "…", "<path>", "<your command>", "<run|patch>"] {
            assert!(is_placeholder(text), "{text}");
        }
        for text in [
            "",
            "<>",
            "a...",
            "./...",
            "go test ./...",
            "<a> <b>",
            "<in >out",
            "x <path>",
        ] {
            assert!(!is_placeholder(text), "{text}");
        }
    }
}
