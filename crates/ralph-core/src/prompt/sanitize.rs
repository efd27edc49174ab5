//! Sanitizes text for a model: no escape sequences, no invisible characters.

use std::iter::Peekable;
use std::str::Chars;

use super::cap::MAX_BACKTICKS;

const ESCAPE: char = '\u{1b}';
const BELL: char = '\u{7}';
const CONTROL_SEQUENCE: char = '\u{9b}';

/// Returns the text without terminal escapes, control characters (except newline and tab) and
/// characters that hide or reorder text. A carriage return counts as a line end. Runs of more than
/// [`MAX_BACKTICKS`] backticks are shortened to that many.
pub(super) fn sanitize(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut backticks = 0;
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        let kept = match char {
            ESCAPE => {
                skip_escape(&mut chars);
                continue;
            }
            CONTROL_SEQUENCE => {
                skip_control_sequence(&mut chars);
                continue;
            }
            '\r' if chars.peek().is_none_or(|next| matches!(next, '\r' | '\n')) => continue,
            '\r' => '\n',
            '\n' | '\t' => char,
            _ if char.is_control() || is_deceptive(char) => continue,
            _ => char,
        };
        backticks = if kept == '`' { backticks + 1 } else { 0 };
        if backticks <= MAX_BACKTICKS {
            clean.push(kept);
        }
    }
    clean
}

/// Returns whether a reader and a model see different text: the tag characters carry invisible
/// text, the others reorder visible text.
fn is_deceptive(char: char) -> bool {
    matches!(char, '\u{e0000}'..='\u{e007f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Skips the rest of an escape sequence.
fn skip_escape(chars: &mut Peekable<Chars<'_>>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_control_sequence(chars);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => skip_string(chars),
        _ => {
            while chars.next_if(|char| matches!(char, ' '..='/')).is_some() {}
            chars.next_if(|char| matches!(char, '0'..='~'));
        }
    }
}

/// Skips parameters and the final character, such as `31m`.
fn skip_control_sequence(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(|char| matches!(char, ' '..='?')).is_some() {}
    chars.next_if(|char| matches!(char, '@'..='~'));
}

/// Skips a title, a link or another string. An unterminated one ends with its line, so that a log
/// cannot hide later lines.
fn skip_string(chars: &mut Peekable<Chars<'_>>) {
    while let Some(char) = chars.next_if(|char| *char != '\n') {
        if char == BELL {
            return;
        }
        if char == ESCAPE {
            chars.next_if(|char| *char == '\\');
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_visible_text_is_left() {
        for (raw, expected) in [
            ("a\tb\nc", "a\tb\nc"),
            ("\u{1b}[1;31merror\u{1b}[0m: no", "error: no"),
            ("\u{9b}31mred", "red"),
            ("\u{1b}[2J\u{1b}[Hx", "x"),
            ("\u{1b}]0;title\u{7}x", "x"),
            (
                "\u{1b}]8;;http://x/\u{1b}\\link\u{1b}]8;;\u{1b}\\.",
                "link.",
            ),
            ("\u{1b}]0;never closed\nnext", "\nnext"),
            ("\u{1b}(Bx\u{1b}7y\u{1b}", "xy"),
            ("\u{1b}[31\nx", "\nx"),
            ("a\0b\u{8}c\u{7f}d\u{85}e", "abcde"),
            ("one\r\ntwo\r\r\nthree\r", "one\ntwo\nthree"),
            ("10%\r20%\rdone", "10%\n20%\ndone"),
            ("a\u{e0041}\u{202e}b\u{2066}c", "abc"),
            ("naïve ✓ 日本", "naïve ✓ 日本"),
        ] {
            assert_eq!(sanitize(raw), expected, "{raw:?}");
        }
    }

    #[test]
    fn runs_of_backticks_are_bounded_even_if_sanitizing_joins_them() {
        let most = "`".repeat(MAX_BACKTICKS);
        assert_eq!(sanitize(&most), most);
        assert_eq!(sanitize(&"`".repeat(5000)), most);
        assert_eq!(sanitize(&"`\u{1b}[0m".repeat(5000)), most);
        assert_eq!(sanitize("``x``"), "``x``");
    }
}
