//! Reads one object, repairing what models commonly get wrong: trailing commas, comments, single quotes,
//! raw line breaks, Python's keywords, lone backslashes.
//!
//! A repair never guesses at content. The strings of the repaired JSON are exactly those that the
//! lexer read, and a reply that ends too early is never completed.

use serde_json::{Map, Value};

use super::error::ReplyError;
use super::lexer::{self, Object, Token};

/// How an object was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// It is strict JSON.
    Strict,
    /// It was repaired.
    Repaired,
}

/// Reads an object that the lexer cut out of `source`.
pub(super) fn read(
    source: &str,
    object: &Object<'_>,
) -> Result<(Map<String, Value>, Reading), ReplyError> {
    if let Some(key) = &object.duplicate {
        return Err(ReplyError::DuplicateKey(key.clone()));
    }
    match serde_json::from_str(source) {
        Ok(value) => Ok((value, Reading::Strict)),
        Err(error) => match repair_tokens(&object.tokens) {
            Some(value) => Ok((value, Reading::Repaired)),
            None => Err(ReplyError::Malformed(error.to_string())),
        },
    }
}

/// Makes strict JSON of the tokens, or `None` where that would be a guess.
fn repair_tokens(tokens: &[Token<'_>]) -> Option<Map<String, Value>> {
    let plain = write(tokens)?;
    if let Ok(value) = serde_json::from_str(&plain) {
        return Some(value);
    }
    let repaired = jsonrepair_rs::jsonrepair(&plain).ok()?;
    let object = lexer::read_object(&repaired).ok()?;
    let same = object.duplicate.is_none() && says_the_same(tokens, &object.tokens);
    same.then(|| serde_json::from_str(&repaired).ok())?
}

/// Writes tokens with every string in strict JSON, or `None` if one of them is junk.
fn write(tokens: &[Token<'_>]) -> Option<String> {
    let mut text = String::new();
    for token in tokens {
        match token {
            Token::Open(c) | Token::Close(c) => text.push(*c),
            Token::Comma => text.push(','),
            Token::Colon => text.push(':'),
            Token::Text(decoded) => text.push_str(&serde_json::to_string(decoded).ok()?),
            Token::Word(word) => text.push_str(word),
            Token::Junk(_) => return None,
        }
        text.push(' ');
    }
    Some(text)
}

/// Tells whether a repair changed nothing but commas, keywords and quotes around names. A colon it
/// added would make a key of something that was meant to be part of a string.
fn says_the_same(before: &[Token<'_>], after: &[Token<'_>]) -> bool {
    let solid = |token: &&Token<'_>| !matches!(token, Token::Comma);
    let (before, after) = (before.iter().filter(solid), after.iter().filter(solid));
    before.clone().count() == after.clone().count()
        && before.zip(after).all(|(before, after)| {
            before == after
                || match (before, after) {
                    (Token::Word(name), Token::Text(text)) => name == text,
                    (Token::Word(word), Token::Word(keyword)) => keyword_of(word) == Some(*keyword),
                    _ => false,
                }
        })
}

/// Returns JSON's word for a keyword of Python or JavaScript.
fn keyword_of(word: &str) -> Option<&'static str> {
    match word {
        "True" => Some("true"),
        "False" => Some("false"),
        "None" | "undefined" => Some("null"),
        _ => None,
    }
}
