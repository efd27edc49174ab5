//! Decodes the strings of a reply, including escapes that are not valid JSON but common in replies.
//!
//! A backslash that starts no valid escape is part of the content: `\d` stays `\d`, `\$HOME` stays
//! `\$HOME`. Three cases can only be decided once the whole string is known:
//!
//! - `\'` is an apostrophe if the string has no unescaped one, because then the model escapes all
//!   of them. Next to unescaped apostrophes (`'it\'s'`, `'\''`) it is code and keeps its backslash.
//! - `\b` and `\f` in a string with a lone backslash are part of a regular expression or of LaTeX
//!   (`\b\d+\b`), not control characters.
//! - `C:\Users\new` is ambiguous between a line break and a directory, so it is rejected.

use super::error::ReplyError;

/// Decoder for one string.
pub(super) struct ReplyStringDecoder {
    quote: char,
    text: String,
    /// Byte offsets of each `\'` in `text`.
    apostrophes: Vec<usize>,
    /// Byte offsets of each decoded `\b` or `\f` in `text`.
    controls: Vec<usize>,
    has_lone_backslash: bool,
    /// Whether an escape such as `\n` was decoded, which may have been part of a path.
    has_letter_escape: bool,
    has_drive: bool,
}

impl ReplyStringDecoder {
    pub(super) fn new(quote: char) -> Self {
        Self {
            quote,
            text: String::new(),
            apostrophes: Vec::new(),
            controls: Vec::new(),
            has_lone_backslash: false,
            has_letter_escape: false,
            has_drive: false,
        }
    }

    /// Appends text that contains no backslash.
    pub(super) fn push_plain(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Decodes the escape after a backslash and returns its length in bytes.
    pub(super) fn push_escape(&mut self, after_backslash: &str) -> Result<usize, ReplyError> {
        let next = after_backslash.chars().next();
        let next = next.ok_or(ReplyError::Truncated)?;
        if let Some((decoded, length)) = unescape(after_backslash, self.quote) {
            if matches!(next, 'b' | 'f') {
                self.controls.push(self.text.len());
            }
            self.has_letter_escape |= matches!(next, 'b' | 'f' | 'n' | 'r' | 't');
            self.text.push(decoded);
            return Ok(length);
        }
        if next == '\'' {
            self.apostrophes.push(self.text.len());
        } else {
            self.has_lone_backslash = true;
            self.has_drive |= ends_with_drive(&self.text);
        }
        self.text.push('\\');
        self.text.push(next);
        Ok(next.len_utf8())
    }

    /// Returns the string; called at the closing quote.
    pub(super) fn finish(mut self) -> Result<String, ReplyError> {
        if self.has_drive && self.has_letter_escape {
            return Err(ReplyError::Malformed(
                "a Windows path has single backslashes; write each of them as `\\\\`".into(),
            ));
        }
        if self.text.matches('\'').count() > self.apostrophes.len() {
            self.apostrophes.clear();
        }
        if !self.has_lone_backslash {
            self.controls.clear();
        }
        if self.apostrophes.is_empty() && self.controls.is_empty() {
            return Ok(self.text);
        }
        Ok(self.resolve_ambiguous())
    }

    /// Rewrites the text: removes the backslashes before apostrophes and turns control characters
    /// back into `\b` and `\f`.
    fn resolve_ambiguous(&self) -> String {
        let mut resolved = String::with_capacity(self.text.len() + self.controls.len());
        let mut apostrophes = self.apostrophes.iter().copied().peekable();
        let mut controls = self.controls.iter().copied().peekable();
        for (at, c) in self.text.char_indices() {
            if apostrophes.next_if_eq(&at).is_some() {
                continue;
            }
            if controls.next_if_eq(&at).is_some() {
                resolved.push_str(if c == '\u{8}' { "\\b" } else { "\\f" });
            } else {
                resolved.push(c);
            }
        }
        resolved
    }
}

/// Returns whether `text` ends with a Windows drive, such as `C:`.
fn ends_with_drive(text: &str) -> bool {
    let mut reversed = text.chars().rev();
    reversed.next() == Some(':')
        && reversed.next().is_some_and(|c| c.is_ascii_alphabetic())
        && !reversed.next().is_some_and(char::is_alphanumeric)
}

/// Returns the decoded character and the length of the escape in bytes, without its backslash.
fn unescape(after_backslash: &str, quote: char) -> Option<(char, usize)> {
    let c = after_backslash.chars().next()?;
    let decoded = match c {
        '"' | '\\' | '/' => c,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => return unescape_unicode(after_backslash),
        _ if c == quote => c,
        _ => return None,
    };
    Some((decoded, 1))
}

fn unescape_unicode(after_backslash: &str) -> Option<(char, usize)> {
    let first = hex_unit(after_backslash)?;
    if let Some(c) = char::from_u32(first) {
        return Some((c, 5));
    }
    let second = hex_unit(after_backslash.get(5..)?.strip_prefix('\\')?)?;
    let unit =
        |number: u32| u16::try_from(number).expect("four hexadecimal digits fit into 16 bits");
    let Ok(pair) = char::decode_utf16([unit(first), unit(second)]).next()? else {
        return None;
    };
    Some((pair, 11))
}

/// Reads `uXXXX`.
fn hex_unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('u')?.get(..4)?;
    let all_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    match u32::from_str_radix(digits, 16) {
        Ok(number) if all_hex => Some(number),
        Ok(_) | Err(_) => None,
    }
}
