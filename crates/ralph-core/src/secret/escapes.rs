//! Reads escapes, control sequences and invisible characters, one at a time.
//!
//! The result depends only on a bounded number of bytes from one position on. If the text ends too
//! early to decide, it is [`EscapeUnit::Unfinished`].

use super::fold::MAX_DROPPED;

/// The longest run of backslashes that counts as one escape.
const MAX_BACKSLASHES: usize = 16;
/// How often `%` or `&` may be escaped.
const MAX_NESTING: usize = 8;
/// Maximum length of a control sequence's parameters, in bytes.
const MAX_PARAMETERS: usize = 64;
/// The longest operating system command, such as the address of a link, in bytes.
const MAX_COMMAND: usize = 256;
/// Maximum length of the digits and the terminator of a character reference.
const MAX_REFERENCE: usize = 8;
const ESCAPE: u8 = 0x1b;

/// The bytes that may start an escape, a control sequence or an invisible character.
pub(super) const SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        special[byte] = byte != b'\t' as usize && byte != b'\n' as usize && byte != b'\r' as usize;
        byte += 1;
    }
    special[0x7f] = true;
    special[b'\\' as usize] = true;
    special[b'%' as usize] = true;
    special[b'&' as usize] = true;
    special[0xc2] = true;
    special[0xe1] = true;
    special[0xe2] = true;
    special[0xef] = true;
    special
};

/// The meaning of the bytes at one position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EscapeUnit {
    /// The byte stands for itself.
    Plain,
    /// The text ends too early to decide.
    Unfinished,
    /// `length` bytes stand for one character or byte, or for nothing.
    Resolved {
        length: usize,
        value: UnescapedValue,
    },
}

/// The decoded value of an escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnescapedValue {
    Nothing,
    Byte(u8),
    Char(char),
}

fn resolved(length: usize, value: UnescapedValue) -> EscapeUnit {
    EscapeUnit::Resolved { length, value }
}

/// Decodes the unit at the start of `text`.
pub(super) fn read_unit(text: &[u8]) -> EscapeUnit {
    match text[0] {
        b'\\' => backslash(text),
        b'%' => percent(text),
        b'&' => reference(text),
        0xc2 | 0xe1 | 0xe2 | 0xef => invisible(text),
        ESCAPE => match sequence(&text[1..]) {
            Some(length) => resolved(1 + length, UnescapedValue::Nothing),
            None => EscapeUnit::Unfinished,
        },
        _ => resolved(1, UnescapedValue::Nothing),
    }
}

/// Returns the length of the rest of a control sequence; `None` if the text ends too early.
///
/// If it is not a sequence, only the escape itself is dropped.
fn sequence(rest: &[u8]) -> Option<usize> {
    match rest.first()? {
        b'[' => parameters(&rest[1..]).map(|length| if length == 0 { 0 } else { 1 + length }),
        b']' | b'P' | b'X' | b'^' | b'_' => command(rest),
        0x20..=0x2f => match rest.get(1)? {
            0x30..=0x7e => Some(2),
            _ => Some(0),
        },
        0x30..=0x7e => Some(1),
        _ => Some(0),
    }
}

/// Returns the length of a control sequence's parameters and its last byte; 0 if it is invalid.
fn parameters(rest: &[u8]) -> Option<usize> {
    let window = &rest[..rest.len().min(MAX_PARAMETERS)];
    match window.iter().position(|byte| !(0x20..=0x3f).contains(byte)) {
        Some(last) if (0x40..=0x7e).contains(&window[last]) => Some(last + 1),
        Some(_) => Some(0),
        None if window.len() == MAX_PARAMETERS => Some(0),
        None => None,
    }
}

/// Returns the length of an operating system command with its terminator; 0 without one.
fn command(rest: &[u8]) -> Option<usize> {
    let window = &rest[..rest.len().min(MAX_COMMAND)];
    let is_end = |byte: &u8| matches!(*byte, 0x07 | ESCAPE | b'\n');
    match window.iter().position(is_end) {
        Some(end) if window[end] == 0x07 => Some(end + 1),
        Some(end) if window[end] == ESCAPE => match rest.get(end + 1)? {
            b'\\' => Some(end + 2),
            _ => Some(0),
        },
        Some(_) => Some(0),
        None if window.len() == MAX_COMMAND => Some(0),
        None => None,
    }
}

/// Decodes zero-width characters and the 8-bit control sequence introducer.
fn invisible(text: &[u8]) -> EscapeUnit {
    let length = if matches!(text[0], 0xc2) { 2 } else { 3 };
    let Some(character) = text.get(..length) else {
        // Only bytes that may still become such a character have to wait.
        let may_become = match text {
            [0xe1, rest @ ..] => rest.first().is_none_or(|byte| *byte == 0xa0),
            [0xe2, rest @ ..] => rest.first().is_none_or(|byte| matches!(byte, 0x80 | 0x81)),
            [0xef, rest @ ..] => rest.first().is_none_or(|byte| matches!(byte, 0xb8 | 0xbb)),
            _ => true,
        };
        return if may_become {
            EscapeUnit::Unfinished
        } else {
            EscapeUnit::Plain
        };
    };
    match character {
        [0xc2, 0x9b] => match parameters(&text[2..]) {
            Some(length) => resolved(2 + length, UnescapedValue::Nothing),
            None => EscapeUnit::Unfinished,
        },
        // Soft hyphen, vowel separator, zero-width and directional characters, variation
        // selectors, byte order mark.
        [0xc2, 0xad]
        | [0xe1, 0xa0, 0x8e]
        | [0xe2, 0x80, 0x8b..=0x8f | 0xaa..=0xae]
        | [0xe2, 0x81, 0xa0..=0xaf]
        | [0xef, 0xb8, 0x80..=0x8f]
        | [0xef, 0xbb, 0xbf] => resolved(length, UnescapedValue::Nothing),
        _ => EscapeUnit::Plain,
    }
}

fn is_invisible(c: char) -> bool {
    let mut buffer = [0; 4];
    let bytes = c.encode_utf8(&mut buffer).as_bytes();
    SPECIAL[usize::from(bytes[0])]
        && bytes[0] >= 0x80
        && matches!(invisible(bytes), EscapeUnit::Resolved { .. })
}

/// Returns the unit for a decoded character, which may be invisible or start a control sequence.
fn character(text: &[u8], length: usize, c: char) -> EscapeUnit {
    match c {
        '\u{1b}' => match sequence(&text[length..]) {
            Some(rest) => resolved(length + rest, UnescapedValue::Nothing),
            None => EscapeUnit::Unfinished,
        },
        '\t' | '\n' | '\r' => resolved(length, UnescapedValue::Char(c)),
        c if c.is_ascii_control() || is_invisible(c) => resolved(length, UnescapedValue::Nothing),
        c => resolved(length, UnescapedValue::Char(c)),
    }
}

/// Decodes a run of backslashes and the escaped character.
fn backslash(text: &[u8]) -> EscapeUnit {
    let window = &text[..text.len().min(MAX_BACKSLASHES + 1)];
    let run = window
        .iter()
        .position(|byte| *byte != b'\\')
        .unwrap_or(window.len());
    if run > MAX_BACKSLASHES {
        return resolved(1, UnescapedValue::Nothing);
    }
    let Some(letter) = text.get(run) else {
        return EscapeUnit::Unfinished;
    };
    let single = |c: char| character(text, run + 1, c);
    match letter {
        b'n' => single('\n'),
        b'r' => single('\r'),
        b't' => single('\t'),
        b'a' => single('\u{7}'),
        b'b' => single('\u{8}'),
        b'e' => single('\u{1b}'),
        b'f' => single('\u{c}'),
        b'v' => single('\u{b}'),
        b'x' => number(text, run, 1, 2, 16),
        b'u' if text.get(run + 1) == Some(&b'{') => braces(text, run),
        b'u' => utf16(text, run),
        b'U' => number(text, run, 1, 8, 16),
        b'0'..=b'3' => number(text, run, 0, 3, 8),
        // The escaped byte stands for itself.
        _ => resolved(run, UnescapedValue::Nothing),
    }
}

/// Decodes a number of a fixed length after backslashes and an optional letter. A value from 128 to
/// 255 is a byte, unless the number has eight digits; any other value is a character.
fn number(text: &[u8], run: usize, letter: usize, digits: usize, radix: u32) -> EscapeUnit {
    let from = run + letter;
    match read_fixed_digits(&text[from..], digits, radix) {
        FixedDigits::Unfinished => EscapeUnit::Unfinished,
        FixedDigits::No => resolved(run, UnescapedValue::Nothing),
        FixedDigits::Number(value) => match (u8::try_from(value), char::from_u32(value)) {
            (Ok(byte), _) if byte >= 0x80 && digits < 8 => {
                resolved(from + digits, UnescapedValue::Byte(byte))
            }
            (_, Some(c)) => character(text, from + digits, c),
            (_, None) => resolved(run, UnescapedValue::Nothing),
        },
    }
}

/// The result of reading digits of a fixed length.
enum FixedDigits {
    Unfinished,
    No,
    Number(u32),
}

fn read_fixed_digits(text: &[u8], digits: usize, radix: u32) -> FixedDigits {
    let window = &text[..text.len().min(digits)];
    let mut value: u32 = 0;
    for byte in window {
        let Some(digit) = char::from(*byte).to_digit(radix) else {
            return FixedDigits::No;
        };
        value = value.wrapping_mul(radix) | digit;
    }
    if window.len() < digits {
        FixedDigits::Unfinished
    } else {
        FixedDigits::Number(value)
    }
}

/// Decodes `\u0041`, or a surrogate pair.
fn utf16(text: &[u8], run: usize) -> EscapeUnit {
    let end = run + 5;
    let first = match read_fixed_digits(&text[run + 1..], 4, 16) {
        FixedDigits::Unfinished => return EscapeUnit::Unfinished,
        FixedDigits::No => return resolved(run, UnescapedValue::Nothing),
        FixedDigits::Number(first) => first,
    };
    if let Some(c) = char::from_u32(first) {
        return character(text, end, c);
    }
    let rest = &text[end..];
    let window = &rest[..rest.len().min(MAX_BACKSLASHES)];
    let second = window.iter().position(|byte| *byte != b'\\');
    let alone = resolved(end, UnescapedValue::Nothing);
    match second {
        None if window.len() < MAX_BACKSLASHES => EscapeUnit::Unfinished,
        None | Some(0) => alone,
        Some(second) if rest[second] != b'u' => alone,
        Some(second) => match read_fixed_digits(&rest[second + 1..], 4, 16) {
            FixedDigits::Unfinished => EscapeUnit::Unfinished,
            FixedDigits::No => alone,
            FixedDigits::Number(low) => {
                let pair = (0xd800..0xdc00).contains(&first) && (0xdc00..0xe000).contains(&low);
                let value = 0x1_0000 + ((first & 0x3ff) << 10) + (low & 0x3ff);
                match char::from_u32(value) {
                    Some(c) if pair => character(text, end + second + 5, c),
                    Some(_) | None => alone,
                }
            }
        },
    }
}

/// Decodes `\u{1F511}`.
fn braces(text: &[u8], run: usize) -> EscapeUnit {
    let digits = &text[run + 2..];
    let window = &digits[..digits.len().min(MAX_REFERENCE)];
    let Some(end) = window.iter().position(|byte| !byte.is_ascii_hexdigit()) else {
        return if window.len() == MAX_REFERENCE {
            resolved(run, UnescapedValue::Nothing)
        } else {
            EscapeUnit::Unfinished
        };
    };
    match (window[end], parse(&window[..end], 16)) {
        (b'}', Some(c)) => character(text, run + 2 + end + 1, c),
        _ => resolved(run, UnescapedValue::Nothing),
    }
}

fn parse(digits: &[u8], radix: u32) -> Option<char> {
    let Ok(digits) = std::str::from_utf8(digits) else {
        return None;
    };
    let Ok(number) = u32::from_str_radix(digits, radix) else {
        return None;
    };
    char::from_u32(number)
}

/// Decodes `%41`, even if its percent sign was encoded repeatedly.
fn percent(text: &[u8]) -> EscapeUnit {
    let mut at = 1;
    let mut nesting = 0;
    while nesting < MAX_NESTING && text[at..].starts_with(b"25") {
        at += 2;
        nesting += 1;
    }
    match read_fixed_digits(&text[at..], 2, 16) {
        FixedDigits::Unfinished => EscapeUnit::Unfinished,
        FixedDigits::Number(value) => {
            match u8::try_from(value).expect("two digits are at most a byte") {
                byte if byte >= 0x80 => resolved(at + 2, UnescapedValue::Byte(byte)),
                byte => character(text, at + 2, char::from(byte)),
            }
        }
        FixedDigits::No if nesting > 0 => resolved(at, UnescapedValue::Byte(b'%')),
        FixedDigits::No => EscapeUnit::Plain,
    }
}

const NAMED: [(&[u8], char); 6] = [
    (b"lt;", '<'),
    (b"gt;", '>'),
    (b"quot;", '"'),
    (b"apos;", '\''),
    (b"sol;", '/'),
    (b"nbsp;", ' '),
];

/// Decodes `&lt;`, `&#60;` or `&#x3c;`, even if its ampersand was escaped repeatedly.
fn reference(text: &[u8]) -> EscapeUnit {
    let mut at = 1;
    let mut nesting = 0;
    while nesting < MAX_NESTING && text[at..].starts_with(b"amp;") {
        at += 4;
        nesting += 1;
    }
    let rest = &text[at..];
    let none = if nesting > 0 {
        resolved(at, UnescapedValue::Byte(b'&'))
    } else {
        EscapeUnit::Plain
    };
    if let Some((name, c)) = NAMED.iter().find(|(name, _)| rest.starts_with(name)) {
        return resolved(at + name.len(), UnescapedValue::Char(*c));
    }
    let mut names = NAMED.iter().map(|(name, _)| *name).chain([&b"amp;"[..]]);
    if names.any(|name| name.starts_with(rest)) {
        return EscapeUnit::Unfinished;
    }
    let (radix, digits) = match rest {
        [b'#', b'x' | b'X', digits @ ..] => (16, digits),
        [b'#', digits @ ..] => (10, digits),
        _ => return none,
    };
    let prefix = rest.len() - digits.len();
    let window = &digits[..digits.len().min(MAX_REFERENCE)];
    let is_digit = |byte: &u8| char::from(*byte).is_digit(radix);
    match window.iter().position(|byte| !is_digit(byte)) {
        None if window.len() < MAX_REFERENCE => EscapeUnit::Unfinished,
        Some(end) if window[end] == b';' => match parse(&window[..end], radix) {
            Some(c) => character(text, at + prefix + end + 1, c),
            None => none,
        },
        None | Some(_) => none,
    }
}

/// Returns the length of the invisible prefix of `text`: control sequences and invisible
/// characters. `None` if the text ends too early to decide.
pub(super) fn invisible_length(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        if !matches!(*byte, ESCAPE | 0xc2 | 0xe1 | 0xe2 | 0xef) {
            return Some(at);
        }
        match read_unit(&text[at..]) {
            EscapeUnit::Plain => return Some(at),
            EscapeUnit::Unfinished => return None,
            EscapeUnit::Resolved { length, .. } => at += length,
        }
        if at > MAX_DROPPED {
            return Some(0);
        }
    }
    None
}
