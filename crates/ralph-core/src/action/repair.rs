//! Parses one object and repairs common mistakes of models: trailing commas, comments, single
//! quotes, raw line breaks, Python keywords, lone backslashes.
//!
//! A repair never guesses content. The strings of the repaired JSON are exactly those from the
//! lexer, and a truncated reply is never completed.

use serde_json::{Map, Value};

use super::error::ReplyError;
use super::lexer::{self, LexedObject, ReplyToken};

/// Whether an object needed a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RepairStatus {
    /// The object is strict JSON.
    Strict,
    /// The object was repaired.
    Repaired,
}

/// Parses `source`, which the lexer has split into `object`.
pub(super) fn read(
    source: &str,
    object: &LexedObject<'_>,
) -> Result<(Map<String, Value>, RepairStatus), ReplyError> {
    if let Some(key) = &object.duplicate_key {
        return Err(ReplyError::DuplicateKey(key.clone()));
    }
    match serde_json::from_str(source) {
        Ok(value) => Ok((value, RepairStatus::Strict)),
        Err(error) => match repair_tokens(&object.tokens) {
            Some(value) => Ok((value, RepairStatus::Repaired)),
            None => Err(ReplyError::Malformed(error.to_string())),
        },
    }
}

/// Converts the tokens to strict JSON; `None` if that would be a guess.
fn repair_tokens(tokens: &[ReplyToken<'_>]) -> Option<Map<String, Value>> {
    let plain = write_tokens(tokens)?;
    if let Ok(value) = serde_json::from_str(&plain) {
        return Some(value);
    }
    let Ok(repaired) = jsonrepair_rs::jsonrepair(&plain) else {
        return None;
    };
    let Ok(object) = lexer::read_object(&repaired) else {
        return None;
    };
    let same = object.duplicate_key.is_none() && has_same_content(tokens, &object.tokens);
    match serde_json::from_str(&repaired) {
        Ok(value) if same => Some(value),
        Ok(_) | Err(_) => None,
    }
}

/// Writes the tokens with every string in strict JSON; `None` if one of them is junk.
fn write_tokens(tokens: &[ReplyToken<'_>]) -> Option<String> {
    let mut text = String::new();
    for token in tokens {
        match token {
            ReplyToken::Open(c) | ReplyToken::Close(c) => text.push(*c),
            ReplyToken::Comma => text.push(','),
            ReplyToken::Colon => text.push(':'),
            ReplyToken::Text(decoded) => {
                text.push_str(&serde_json::to_string(decoded).expect("a string can be serialized"));
            }
            ReplyToken::Word(word) => text.push_str(word),
            ReplyToken::Junk(_) => return None,
        }
        text.push(' ');
    }
    Some(text)
}

/// Returns whether a repair changed only commas, keywords and quotes around names. An added colon
/// would turn part of a string into a key.
fn has_same_content(before: &[ReplyToken<'_>], after: &[ReplyToken<'_>]) -> bool {
    let is_not_comma = |token: &&ReplyToken<'_>| !matches!(token, ReplyToken::Comma);
    let (before, after) = (
        before.iter().filter(is_not_comma),
        after.iter().filter(is_not_comma),
    );
    before.clone().count() == after.clone().count()
        && before.zip(after).all(|(before, after)| {
            before == after
                || match (before, after) {
                    (ReplyToken::Word(name), ReplyToken::Text(text)) => name == text,
                    (ReplyToken::Word(word), ReplyToken::Word(keyword)) => {
                        json_keyword(word) == Some(*keyword)
                    }
                    _ => false,
                }
        })
}

/// Translates a keyword of Python or JavaScript to JSON.
fn json_keyword(word: &str) -> Option<&'static str> {
    match word {
        "True" => Some("true"),
        "False" => Some("false"),
        "None" | "undefined" => Some("null"),
        _ => None,
    }
}
