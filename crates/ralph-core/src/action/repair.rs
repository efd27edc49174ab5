//! Finds the response in a reply and reads it, repairing what models commonly get wrong: prose and
//! fences around it, thoughts before it, trailing commas, comments, single quotes, raw line breaks,
//! Python's keywords, lone backslashes, an object written as a string.
//!
//! A repair never guesses at content. The strings of the repaired JSON are exactly those that the
//! lexer read, and a reply that ends too early is never completed.

use serde_json::{Map, Value};

use super::error::ReplyError;
use super::lexer::{self, Object, Token};
use super::limits::MAX_REPLY_BYTES;

/// The key that tells a response from any other object in a reply.
const RESPONSE_KEY: &str = "actions";

/// What some models wrap around their thoughts.
const THOUGHT_TAGS: [&str; 4] = ["think", "thinking", "thought", "reasoning"];

/// A response as JSON.
#[derive(Debug)]
pub(super) struct Found {
    /// The object.
    pub(super) object: Map<String, Value>,
    /// Whether the reply was anything else than this object in strict JSON.
    pub(super) repaired: bool,
}

/// Finds the first object with `actions` in a reply, or else its first object, and reads it.
pub(super) fn find(reply: &str) -> Result<Found, ReplyError> {
    if reply.len() > MAX_REPLY_BYTES {
        return Err(ReplyError::TooLong(reply.len()));
    }
    if let Some(inside) = quoted(reply) {
        let found = find_unquoted(&inside)?;
        return Ok(Found {
            repaired: true,
            ..found
        });
    }
    find_unquoted(reply)
}

/// Returns what a reply says that is nothing but a JSON string: some models write the object into one.
fn quoted(reply: &str) -> Option<String> {
    let reply = without_fence(reply.trim());
    if !reply.starts_with('"') {
        return None;
    }
    // Strict JSON or nothing: whatever else is in quotes may be prose.
    let inside: String = serde_json::from_str(reply).ok()?;
    lexer::begins_object(inside.trim_start()).then_some(inside)
}

/// Returns a text without the code fence around it.
fn without_fence(text: &str) -> &str {
    let fenced = || {
        let inside = text.strip_prefix("```")?.strip_suffix("```")?;
        let (_language, inside) = inside.split_once('\n')?;
        Some(inside.trim())
    };
    fenced().unwrap_or(text)
}

fn find_unquoted(reply: &str) -> Result<Found, ReplyError> {
    let (start, object) = locate(reply)?;
    if let Some(key) = object.duplicate {
        return Err(ReplyError::DuplicateKey(key));
    }
    let (before, rest) = reply.split_at(start);
    let (source, after) = rest.split_at(object.length);
    match serde_json::from_str(source) {
        Ok(value) => Ok(Found {
            object: value,
            repaired: !(is_blank(before) && is_blank(after)),
        }),
        Err(error) => match repair(&object.tokens) {
            Some(value) => Ok(Found {
                object: value,
                repaired: true,
            }),
            None => Err(ReplyError::Malformed(error.to_string())),
        },
    }
}

/// Tells whether strict JSON may have this text around it.
fn is_blank(text: &str) -> bool {
    text.bytes()
        .all(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
}

/// Returns the response and where it starts.
fn locate(reply: &str) -> Result<(usize, Object<'_>), ReplyError> {
    let mut response = None;
    let mut other = None;
    let mut at = 0;
    while let Some(offset) = reply[at..].find(['{', '<']) {
        let start = at + offset;
        let rest = &reply[start..];
        if let Some(tag) = THOUGHT_TAGS.iter().find(|tag| opens(rest, tag)) {
            // Thoughts without an end are all there is: what they mention was never said.
            at = start + end_of_thought(rest, tag).ok_or(ReplyError::Truncated)?;
        } else if let Some(tag) = THOUGHT_TAGS.iter().find(|tag| closes(rest, tag)) {
            // The beginning of the thoughts was in the prompt, so all of this was thought.
            (response, other) = (None, None);
            at = start + tag.len() + "</>".len();
        } else if lexer::begins_object(rest) {
            let object = lexer::read_object(rest)?;
            at = start + object.length;
            let slot = if object.keys.contains(RESPONSE_KEY) {
                &mut response
            } else {
                &mut other
            };
            slot.get_or_insert((start, object));
        } else {
            at = start + 1;
        }
    }
    response.or(other).ok_or(ReplyError::NoObject)
}

fn opens(text: &str, tag: &str) -> bool {
    is_tag(text, "<", tag)
}

fn closes(text: &str, tag: &str) -> bool {
    is_tag(text, "</", tag)
}

fn is_tag(text: &str, start: &str, tag: &str) -> bool {
    let Some(name) = text.strip_prefix(start) else {
        return false;
    };
    let matches = name
        .get(..tag.len())
        .is_some_and(|name| name.eq_ignore_ascii_case(tag));
    matches && name[tag.len()..].starts_with('>')
}

fn end_of_thought(text: &str, tag: &str) -> Option<usize> {
    let (start, _) = text
        .match_indices("</")
        .find(|(index, _)| closes(&text[*index..], tag))?;
    Some(start + tag.len() + "</>".len())
}

/// Makes strict JSON of the tokens, or `None` where that would be a guess.
fn repair(tokens: &[Token<'_>]) -> Option<Map<String, Value>> {
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
