//! Finds the answer in a reply that may also contain prose, code fences, reasoning or an example of
//! the format, or that wraps the answer in a tool call or a string.
//!
//! A reply has exactly one answer. Repeating the same answer is fine; two different answers are
//! rejected because the intended one is unknown: the first may be a draft, the second an
//! alternative. Examples, quotations and reasoning are not answers.

use std::ops::Range;

use serde_json::{Map, Value};

use super::error::ReplyError;
use super::lexer::{self, LexedObject};
use super::limits::MAX_REPLY_BYTES;
use super::repair::{self, RepairStatus};
use super::{example, reasoning, wrapper};

/// The deepest nesting of wrappers around an answer.
const MAX_WRAPPERS: usize = 2;

/// The keys by which an answer is recognised and compared.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnswerShape {
    /// The key that distinguishes an answer from any other object in a reply.
    pub(super) key: &'static str,
    /// The keys that have an effect; empty means all of them.
    pub(super) effective_keys: &'static [&'static str],
}

impl AnswerShape {
    /// Returns whether two answers have the same effect.
    fn has_same_effect(self, left: &Map<String, Value>, right: &Map<String, Value>) -> bool {
        if self.effective_keys.is_empty() {
            return left == right;
        }
        self.effective_keys
            .iter()
            .all(|key| left.get(*key) == right.get(*key))
    }
}

/// An answer as a JSON object.
#[derive(Debug)]
pub(super) struct ReplyObject {
    pub(super) object: Map<String, Value>,
    /// Whether the reply was anything other than this object in strict JSON.
    pub(super) repaired: bool,
}

/// Finds and parses the answer in a reply. Without an answer or example, returns the first other
/// object, so that the validation can report the missing key.
pub(super) fn find(reply: &str, shape: AnswerShape) -> Result<ReplyObject, ReplyError> {
    if reply.len() > MAX_REPLY_BYTES {
        return Err(ReplyError::TooLong(reply.len()));
    }
    if let Some(inside) = unquote_json_reply(reply) {
        let found = find_at_depth(&inside, shape, 0)?;
        return Ok(ReplyObject {
            repaired: true,
            ..found
        });
    }
    find_at_depth(reply, shape, 0)
}

/// Unquotes a reply that is a single JSON string, because some models encode the object that way.
fn unquote_json_reply(reply: &str) -> Option<String> {
    let reply = without_fence(reply.trim());
    if !reply.starts_with('"') {
        return None;
    }
    // Only strict JSON: any other text in quotes may be prose.
    let Ok(inside) = serde_json::from_str::<String>(reply) else {
        return None;
    };
    lexer::begins_object(inside.trim_start()).then_some(inside)
}

/// Strips the code fence around `text`, if any.
fn without_fence(text: &str) -> &str {
    let fenced = || {
        let inside = text.strip_prefix("```")?.strip_suffix("```")?;
        let (_language, inside) = inside.split_once('\n')?;
        Some(inside.trim())
    };
    fenced().unwrap_or(text)
}

fn find_at_depth(
    reply: &str,
    shape: AnswerShape,
    wrappers: usize,
) -> Result<ReplyObject, ReplyError> {
    let mut answers = AnswerCandidates::new(reply, shape, wrappers);
    let mut at = 0;
    // Tracked incrementally: scanning back from each object would take quadratic time.
    let mut is_quoted = is_blockquote(reply);
    let mut scanned = 0;
    while let Some(offset) = reply[at..].find(['{', '<']) {
        let start = at + offset;
        let rest = &reply[start..];
        if let Some(length) = reasoning::block_len(rest)? {
            at = start + length;
        } else if let Some(length) = reasoning::closing_tag_len(rest) {
            // The opening tag was part of the prompt, so everything so far is reasoning.
            answers.clear();
            at = start + length;
        } else if lexer::begins_object(rest) {
            let object = lexer::read_object(rest)?;
            at = start + object.length;
            if let Some(end) = reply[scanned..start].rfind('\n') {
                is_quoted = is_blockquote(&reply[scanned + end + 1..]);
            }
            scanned = start;
            answers.add(start, object, is_quoted);
        } else {
            at = start + 1;
        }
    }
    answers.finish()
}

/// Returns whether `line` belongs to a Markdown block quote.
fn is_blockquote(line: &str) -> bool {
    line.trim_start_matches([' ', '\t']).starts_with('>')
}

/// The answers found in a reply so far.
struct AnswerCandidates<'r> {
    reply: &'r str,
    shape: AnswerShape,
    wrappers: usize,
    /// The range of the reply without surrounding whitespace.
    trimmed_range: Range<usize>,
    /// The first answer; later ones must have the same effect.
    first: Option<Result<ReplyObject, ReplyError>>,
    has_several: bool,
    /// The error to report if the reply contains only examples.
    example: Option<ReplyError>,
    /// The first object that is not an answer.
    other: Option<(usize, LexedObject<'r>)>,
}

impl<'r> AnswerCandidates<'r> {
    fn new(reply: &'r str, shape: AnswerShape, wrappers: usize) -> Self {
        Self {
            reply,
            shape,
            wrappers,
            trimmed_range: trimmed_range(reply),
            first: None,
            has_several: false,
            example: None,
            other: None,
        }
    }

    /// Discards everything found so far.
    fn clear(&mut self) {
        (self.first, self.example, self.other) = (None, None, None);
        self.has_several = false;
    }

    /// Classifies and records the next object.
    fn add(&mut self, start: usize, object: LexedObject<'r>, is_quoted: bool) {
        let read = if object.keys.contains(self.shape.key) {
            self.read(start, &object)
        } else if let Some(read) = self.read_wrapped(start, &object) {
            read
        } else {
            self.other.get_or_insert((start, object));
            return;
        };
        let example = match &read {
            Ok(found) if is_quoted || example::is_example(&found.object) => {
                Some(ReplyError::OnlyExample)
            }
            Err(error) if is_quoted || example::has_omissions(&object.tokens) => {
                Some(error.clone())
            }
            Ok(_) | Err(_) => None,
        };
        if let Some(error) = example {
            self.example.get_or_insert(error);
        } else if let Some(first) = &self.first {
            self.has_several |= match (first, &read) {
                (Ok(first), Ok(next)) => !self.shape.has_same_effect(&first.object, &next.object),
                (Err(_), _) | (_, Err(_)) => true,
            };
        } else {
            self.first = Some(read);
        }
    }

    /// Parses the object at `start`.
    fn read(&self, start: usize, object: &LexedObject<'_>) -> Result<ReplyObject, ReplyError> {
        let span = start..start + object.length;
        let (value, status) = repair::read(&self.reply[span.clone()], object)?;
        Ok(ReplyObject {
            object: value,
            repaired: status == RepairStatus::Repaired || span != self.trimmed_range,
        })
    }

    /// Parses the answer inside a tool call or a message, if there is one.
    fn read_wrapped(
        &self,
        start: usize,
        object: &LexedObject<'_>,
    ) -> Option<Result<ReplyObject, ReplyError>> {
        if self.wrappers == MAX_WRAPPERS || !wrapper::may_wrap_answer(&object.keys) {
            return None;
        }
        let Ok(read) = self.read(start, object) else {
            return None;
        };
        let outer = read.object;
        let text = match wrapper::wrapped_value(&outer)? {
            Value::String(text) => text.clone(),
            value @ Value::Object(_) => value.to_string(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => return None,
        };
        if !lexer::begins_object(without_fence(text.trim())) {
            return None;
        }
        match find_at_depth(&text, self.shape, self.wrappers + 1) {
            Ok(found) if !found.object.contains_key(self.shape.key) => None,
            Ok(found) => Some(Ok(ReplyObject {
                repaired: true,
                ..found
            })),
            Err(error) => Some(Err(error)),
        }
    }

    fn finish(self) -> Result<ReplyObject, ReplyError> {
        if self.has_several {
            return Err(ReplyError::SeveralAnswers);
        }
        match (&self.example, &self.other) {
            (Some(error), _) if self.first.is_none() => Err(error.clone()),
            (_, Some((start, object))) if self.first.is_none() => self.read(*start, object),
            _ => self.first.unwrap_or(Err(ReplyError::NoObject)),
        }
    }
}

/// Returns the range of `text` without the surrounding whitespace that strict JSON allows.
fn trimmed_range(text: &str) -> Range<usize> {
    let is_blank = |c| matches!(c, ' ' | '\t' | '\n' | '\r');
    let start = text.len() - text.trim_start_matches(is_blank).len();
    let end = text.trim_end_matches(is_blank).len();
    start..end
}
