//! Splits one JSON-like object at the start of a text into tokens. It is lenient about the syntax
//! of strings and strict about the end of the object.
//!
//! The module `escapes` decodes strings: code inside them must survive a repair byte for byte.

use std::collections::BTreeSet;

use super::error::ReplyError;
use super::escapes::ReplyStringDecoder;
use super::limits::MAX_DEPTH;
use super::text::one_line;

/// The longest key in an error, in characters.
const MAX_QUOTED_KEY_CHARS: usize = 60;

/// One token of JSON-like text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReplyToken<'t> {
    /// `{` or `[`.
    Open(char),
    /// `}` or `]`.
    Close(char),
    /// `,`.
    Comma,
    /// `:`.
    Colon,
    /// A quoted string, decoded.
    Text(String),
    /// A number, a keyword or an unquoted name.
    Word(&'t str),
    /// A character that is not valid in JSON.
    Junk(char),
}

/// A complete object, split into tokens.
#[derive(Debug)]
pub(super) struct LexedObject<'t> {
    /// From the opening to the closing brace, without comments.
    pub(super) tokens: Vec<ReplyToken<'t>>,
    /// In bytes of the source text.
    pub(super) length: usize,
    /// The keys of the object itself, not of nested objects.
    pub(super) keys: BTreeSet<String>,
    /// The first key that occurs twice in one object, nested or not; shortened for display.
    pub(super) duplicate_key: Option<String>,
}

/// Returns whether `text` starts like an object rather than a brace in prose or code.
pub(super) fn begins_object(text: &str) -> bool {
    let Some(inside) = text.strip_prefix('{') else {
        return false;
    };
    let inside = inside.trim_start();
    let after_name = inside.trim_start_matches(is_word_char);
    match inside.chars().next() {
        // A comment is inconclusive; parsing the whole object decides.
        None | Some('"' | '\'' | '}' | '/' | '#') => true,
        Some(_) => after_name.len() < inside.len() && after_name.trim_start().starts_with(':'),
    }
}

/// Reads the object at the start of `text`, for which [`begins_object`] must be true.
///
/// Fails if the text ends inside the object, because the missing rest is unknown.
pub(super) fn read_object(text: &str) -> Result<LexedObject<'_>, ReplyError> {
    let mut reader = ReplyLexer {
        text,
        at: 0,
        levels: Vec::new(),
        object: LexedObject {
            tokens: Vec::new(),
            length: 0,
            keys: BTreeSet::new(),
            duplicate_key: None,
        },
    };
    while reader.step()? == LexStep::Inside {}
    reader.object.length = reader.at;
    Ok(reader.object)
}

fn is_word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '-' | '+' | '.')
}

#[derive(PartialEq, Eq)]
enum LexStep {
    Inside,
    Complete,
}

struct NestingLevel {
    closer: char,
    keys: BTreeSet<String>,
}

struct ReplyLexer<'t> {
    text: &'t str,
    at: usize,
    levels: Vec<NestingLevel>,
    object: LexedObject<'t>,
}

impl<'t> ReplyLexer<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn next(&mut self) -> Result<char, ReplyError> {
        let c = self.rest().chars().next().ok_or(ReplyError::Truncated)?;
        self.at += c.len_utf8();
        Ok(c)
    }

    fn step(&mut self) -> Result<LexStep, ReplyError> {
        let start = self.at;
        let token = match self.next()? {
            c if c.is_whitespace() => {
                self.at = self.text.len() - self.rest().trim_start().len();
                return Ok(LexStep::Inside);
            }
            '#' => return self.skip_past("\n"),
            '/' if self.rest().starts_with('/') => return self.skip_past("\n"),
            '/' if self.rest().starts_with('*') => return self.skip_past("*/"),
            c @ ('{' | '[') => self.open(c)?,
            c @ ('}' | ']') => self.close(c)?,
            ',' => ReplyToken::Comma,
            ':' => self.colon(),
            quote @ ('"' | '\'') => ReplyToken::Text(self.string(quote)?),
            c if is_word_char(c) => {
                let length = self.rest().find(|c| !is_word_char(c));
                self.at += length.ok_or(ReplyError::Truncated)?;
                ReplyToken::Word(&self.text[start..self.at])
            }
            c => ReplyToken::Junk(c),
        };
        self.object.tokens.push(token);
        Ok(if self.levels.is_empty() {
            LexStep::Complete
        } else {
            LexStep::Inside
        })
    }

    fn skip_past(&mut self, end: &str) -> Result<LexStep, ReplyError> {
        let length = self.rest().find(end).ok_or(ReplyError::Truncated)?;
        self.at += length + end.len();
        Ok(LexStep::Inside)
    }

    fn open(&mut self, bracket: char) -> Result<ReplyToken<'t>, ReplyError> {
        if self.levels.len() == MAX_DEPTH {
            return Err(ReplyError::TooDeep);
        }
        self.levels.push(NestingLevel {
            closer: if bracket == '{' { '}' } else { ']' },
            keys: BTreeSet::new(),
        });
        Ok(ReplyToken::Open(bracket))
    }

    fn close(&mut self, bracket: char) -> Result<ReplyToken<'t>, ReplyError> {
        let level = self.levels.pop().ok_or(ReplyError::NoObject)?;
        if level.closer != bracket {
            let line = self.text[..self.at].split('\n').count();
            return Err(ReplyError::Malformed(format!(
                "expected `{}`, found `{bracket}` in line {line} of the object",
                level.closer
            )));
        }
        if self.levels.is_empty() {
            self.object.keys = level.keys;
        }
        Ok(ReplyToken::Close(bracket))
    }

    fn colon(&mut self) -> ReplyToken<'t> {
        let key = match self.object.tokens.last() {
            Some(ReplyToken::Text(text)) => Some(text.clone()),
            Some(ReplyToken::Word(word)) => Some((*word).to_owned()),
            Some(
                ReplyToken::Open(_)
                | ReplyToken::Close(_)
                | ReplyToken::Comma
                | ReplyToken::Colon
                | ReplyToken::Junk(_),
            )
            | None => None,
        };
        if let (Some(key), Some(level)) = (key, self.levels.last_mut())
            && !level.keys.insert(key.clone())
        {
            self.object
                .duplicate_key
                .get_or_insert_with(|| one_line(&key, MAX_QUOTED_KEY_CHARS));
        }
        ReplyToken::Colon
    }

    /// Reads a string after its opening quote. Raw line breaks are part of the string.
    fn string(&mut self, quote: char) -> Result<String, ReplyError> {
        let mut decoder = ReplyStringDecoder::new(quote);
        loop {
            let plain = self.rest().find([quote, '\\']);
            let plain = &self.rest()[..plain.ok_or(ReplyError::Truncated)?];
            decoder.push_plain(plain);
            self.at += plain.len();
            if self.next()? == quote {
                return decoder.finish();
            }
            self.at += decoder.push_escape(self.rest())?;
        }
    }
}
