//! Folds text: resolves escapes and drops invisible characters.
//!
//! A program can print a secret in more spellings than can be listed: percent-encoded with any set
//! of unescaped bytes, in JSON inside JSON, with colour codes or zero-width characters in between.
//! Therefore text and secrets are compared in folded form.
//!
//! The fold of a spelling equals the fold of the secret itself. Repeated escaping does not matter:
//! a run of backslashes counts as one, `%2541` is `%41`, `&amp;lt;` is `&lt;`.
//!
//! Each token is recognised within a fixed length from its start, so that chunked text folds
//! like the whole.

use super::escapes::{EscapeUnit, SPECIAL, UnescapedValue, read_unit};

/// Maximum number of dropped bytes between two bytes of one secret.
pub(super) const MAX_DROPPED: usize = 256;
/// Inserted if too much was dropped. No secret contains it: NUL is dropped from every fold.
const BREAK: u8 = 0;

/// A folded text and the mapping of its positions to those of the source.
pub(super) struct FoldedText {
    bytes: Vec<u8>,
    tokens: Vec<FoldToken>,
    /// Start of an unfinished token at the end of the source, or the source's length.
    hold: usize,
}

/// A piece of the source that folds to other bytes or to none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FoldToken {
    source: (usize, usize),
    folded: (usize, usize),
}

/// Decodes the bytes at a position. The end of the text is treated like the end of a line.
fn unit_at(text: &[u8], at: usize, is_last: bool) -> EscapeUnit {
    match read_unit(&text[at..]) {
        EscapeUnit::Unfinished if is_last => read_unit(&[&text[at..], b"\n"].concat()),
        unit @ (EscapeUnit::Plain | EscapeUnit::Unfinished | EscapeUnit::Resolved { .. }) => unit,
    }
}

/// Returns the fold of a secret, without trailing bytes that could merge with the text after it.
pub(super) fn fold_secret(secret: &[u8]) -> Vec<u8> {
    let end = secret
        .iter()
        .rposition(|byte| !b"\\%&".contains(byte))
        .map_or(0, |last| last + 1);
    FoldedText::new(&secret[..end], 0, true).bytes
}

impl FoldedText {
    /// Folds text from `start` on.
    pub(super) fn new(text: &[u8], start: usize, is_last: bool) -> Self {
        let mut folded = Self {
            bytes: Vec::new(),
            tokens: Vec::new(),
            hold: text.len(),
        };
        let mut at = start;
        // Text between tokens is copied in one piece.
        let mut copied = start;
        while let Some(next) = text[at..]
            .iter()
            .position(|byte| SPECIAL[usize::from(*byte)])
        {
            at += next;
            match unit_at(text, at, is_last) {
                EscapeUnit::Unfinished if !is_last => {
                    folded.hold = at;
                    break;
                }
                EscapeUnit::Plain | EscapeUnit::Unfinished => at += 1,
                EscapeUnit::Resolved { length, value } => {
                    folded.bytes.extend_from_slice(&text[copied..at]);
                    folded.push((at, at + length), value);
                    at += length;
                    copied = at;
                }
            }
        }
        folded.bytes.extend_from_slice(&text[copied..folded.hold]);
        folded
    }

    fn push(&mut self, source: (usize, usize), value: UnescapedValue) {
        let from = self.bytes.len();
        match value {
            UnescapedValue::Nothing => {}
            UnescapedValue::Byte(byte) => self.bytes.push(byte),
            UnescapedValue::Char(c) => {
                let mut buffer = [0; 4];
                self.bytes
                    .extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
            }
        }
        let folded = (from, self.bytes.len());
        if let Some(last) = self.tokens.last_mut()
            && value == UnescapedValue::Nothing
            && last.folded == folded
            && last.source.1 == source.0
        {
            last.source.1 = source.1;
            if last.source.1 - last.source.0 > MAX_DROPPED {
                self.bytes.push(BREAK);
                last.folded.1 = self.bytes.len();
            }
            return;
        }
        self.tokens.push(FoldToken { source, folded });
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the position of an unfinished token in the source; text from there on is delayed.
    pub(super) fn hold(&self) -> usize {
        self.hold
    }

    /// Returns the ranges in which a match of at most `longest` bytes that contains a token may
    /// start. They are ordered and do not overlap.
    pub(super) fn windows(&self, longest: usize) -> Vec<(usize, usize)> {
        let mut windows: Vec<(usize, usize)> = Vec::new();
        for token in &self.tokens {
            let from = (token.folded.0 + 1).saturating_sub(longest);
            let to = token.folded.1;
            match windows.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                Some(_) | None => windows.push((from, to)),
            }
        }
        windows
    }

    /// Returns the source range of folded bytes, if it contains a token.
    pub(super) fn source(&self, from: usize, to: usize, start: usize) -> Option<(usize, usize)> {
        let first = self
            .tokens
            .partition_point(|token| token.folded.1 <= from && token.folded.0 <= from);
        let token = self.tokens.get(first)?;
        let is_inside = token.folded.0 < to && (token.folded.1 > from);
        is_inside.then(|| {
            (
                self.position(from, start),
                self.position(to - 1, start) + self.width(to - 1),
            )
        })
    }

    /// Returns the source position of a folded byte.
    pub(super) fn position(&self, folded: usize, start: usize) -> usize {
        let after = self
            .tokens
            .partition_point(|token| token.folded.0 <= folded);
        // A dropped token starts at the same folded position as the byte after it.
        match self.tokens[..after].last() {
            None => start + folded,
            Some(token) if folded < token.folded.1 => token.source.0,
            Some(token) => token.source.1 + (folded - token.folded.1),
        }
    }

    /// Returns the length of a folded byte in the source.
    fn width(&self, folded: usize) -> usize {
        let after = self
            .tokens
            .partition_point(|token| token.folded.0 <= folded);
        match self.tokens[..after].last() {
            Some(token) if folded < token.folded.1 => token.source.1 - token.source.0,
            Some(_) | None => 1,
        }
    }

    /// Returns a source position, or the start of the token that contains it.
    pub(super) fn token_start(&self, source: usize) -> usize {
        let after = self.tokens.partition_point(|token| token.source.0 < source);
        match self.tokens[..after].last() {
            Some(token) if source < token.source.1 => token.source.0,
            Some(_) | None => source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold(text: &str) -> String {
        let folded = FoldedText::new(text.as_bytes(), 0, true);
        String::from_utf8_lossy(folded.bytes()).into_owned()
    }

    #[test]
    fn escapes_are_resolved_and_invisible_characters_dropped() {
        for (text, folded) in [
            (
                "plain text, 100 percent & more",
                "plain text, 100 percent & more",
            ),
            (r#"a\"b\\\"c"#, r#"a"b"c"#),
            (r"a\nb\\nc\\\\n", "a\nb\nc\n"),
            (r"\u0070\\u0061\x73\u{73}", "pass"),
            (r"\ud83d\udd11 \\ud83d\\udd11", "\u{1f511} \u{1f511}"),
            (r"schl\303\274ssel", "schlüssel"),
            ("p%40s%2fs%2520x%252525", "p@s/s x%"),
            ("100%, 5% of, %zz", "100%, 5% of, %zz"),
            (
                "a&lt;b&amp;lt;c&#39;&#x27;&amp;&amp;amp;d &c",
                "a<b<c''&&d &c",
            ),
            ("ab\u{1b}[01;31m\u{1b}[Kcd\u{1b}[0me", "abcde"),
            (r"ab\u001b[31mcd\x1b[0m\e[1me\033[0m", "abcde"),
            (
                "ab\u{1b}]8;;https://x\u{7}cd\u{1b}]8;;\u{1b}\\e\u{1b}(B",
                "abcde",
            ),
            ("a\u{200b}b\u{feff}c\u{ad}d\u{2060}e\u{0}f", "abcdef"),
            (
                "50\u{20ac} caf\u{e9} \u{4f60}",
                "50\u{20ac} caf\u{e9} \u{4f60}",
            ),
            ("a\u{1b}", "a"),
            (r"a\\", "a"),
        ] {
            assert_eq!(fold(text), folded, "{text:?}");
        }
    }

    #[test]
    fn folded_bytes_map_to_their_source() {
        let text = b"xx p%40\x1b[0mss yy";
        let folded = FoldedText::new(text, 3, true);
        assert_eq!(folded.bytes(), b"p@ss yy");
        assert_eq!(folded.source(0, 4, 3), Some((3, 13)));
        assert_eq!(folded.source(0, 2, 3), Some((3, 7)));
        assert_eq!(folded.source(0, 1, 3), None);
        assert_eq!(folded.source(2, 4, 3), None);
        assert_eq!(folded.source(1, 3, 3), Some((4, 12)));
        for (source, start) in [(3, 3), (4, 4), (5, 4), (7, 7), (9, 7), (11, 11), (12, 12)] {
            assert_eq!(folded.token_start(source), start, "{source}");
        }
    }

    #[test]
    fn unfinished_tokens_wait_for_more_text() {
        for (text, hold) in [
            (&b"ab\\"[..], 2),
            (b"ab\\u00", 2),
            (b"ab\\ud83d", 2),
            (b"ab%4", 2),
            (b"ab%25", 2),
            (b"ab&am", 2),
            (b"ab&amp;", 2),
            (b"ab\x1b[3", 2),
            (b"ab\xe2\x80", 2),
            (b"ab\xe2\x82", 4),
            (b"ab%zz", 5),
        ] {
            assert_eq!(FoldedText::new(text, 0, false).hold(), hold, "{text:?}");
        }
    }

    #[test]
    fn too_many_dropped_bytes_separate_their_neighbours() {
        let near = format!("ab{}cd", "\u{1b}[0m".repeat(10));
        assert_eq!(fold(&near), "abcd");
        let far = format!("ab{}cd", "\u{1b}[0m".repeat(100));
        assert!(!fold(&far).contains("abcd"));
    }
}
