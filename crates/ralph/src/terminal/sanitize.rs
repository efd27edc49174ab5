//! Sanitizes untrusted text for a terminal.
//!
//! Output of a sandbox or a model is data: it must not move the cursor, set the title, write the
//! clipboard, hide text or reorder it. Escape sequences are removed; invisible characters and
//! control characters become `�`, so that the reader notices them.

use std::iter::Peekable;
use std::str::Chars;

/// Replaces a character that must not reach a terminal.
const MARK: char = char::REPLACEMENT_CHARACTER;

/// The search limit for the end of an escape string. It bounds the cost of text with many
/// introducers.
const MAX_STRING_CHARS: usize = 4096;

/// Returns the text without control sequences; line breaks and tabs are preserved.
pub fn text(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '\n' | '\t' => safe.push(next),
            // A lone carriage return would let a line overwrite itself; the reader should see both
            // parts.
            '\r' => {
                if rest.peek() != Some(&'\n') {
                    safe.push('\n');
                }
            }
            '\u{1b}' => skip_escape(&mut rest),
            '\u{9b}' => skip_control_sequence(&mut rest),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut rest),
            '\u{2028}' | '\u{2029}' => safe.push('\n'),
            hidden if hidden.is_control() || is_invisible(hidden) => safe.push(MARK),
            visible => safe.push(visible),
        }
    }
    safe
}

/// Returns the text as one safe line: line breaks and tabs become spaces.
pub fn line(text: &str) -> String {
    self::text(text.trim()).replace(['\n', '\t'], " ")
}

/// Skips the sequence after an escape character.
fn skip_escape(rest: &mut Peekable<Chars<'_>>) {
    match rest.peek() {
        Some('[') => {
            rest.next();
            skip_control_sequence(rest);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            rest.next();
            skip_string(rest);
        }
        Some(_) => {
            while rest.next_if(|c| (' '..='/').contains(c)).is_some() {}
            rest.next_if(|c| ('0'..='~').contains(c));
        }
        None => {}
    }
}

/// Skips parameters and the final character: `31m` of a colour.
fn skip_control_sequence(rest: &mut Peekable<Chars<'_>>) {
    while rest.next_if(|c| (' '..='?').contains(c)).is_some() {}
    rest.next_if(|c| ('@'..='~').contains(c));
}

/// Skips a string such as a title or a link up to its end. A string that does not end soon and on
/// its line stays readable: otherwise an introducer alone would hide all following text.
fn skip_string(rest: &mut Peekable<Chars<'_>>) {
    let mut ahead = rest.clone();
    for _ in 0..MAX_STRING_CHARS {
        let Some(next) = ahead.next() else {
            return;
        };
        let ended = match next {
            '\u{7}' | '\u{9c}' => true,
            '\u{1b}' => ahead.next_if_eq(&'\\').is_some(),
            '\n' | '\r' => return,
            _ => false,
        };
        if ended {
            *rest = ahead;
            return;
        }
    }
}

/// Returns whether a character is invisible or changes the order of the text.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_sequences_are_removed() {
        for (raw, safe) in [
            (
                "plain, ümläut, 漢字, ✓ and 👍",
                "plain, ümläut, 漢字, ✓ and 👍",
            ),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}[2J\u{1b}[1;1Hgone", "gone"),
            ("\u{1b}[38;2;1;2;3mtrue\u{1b}[?25l", "true"),
            ("\u{1b}]0;title\u{7}after", "after"),
            ("\u{1b}]52;c;ZXZpbA==\u{1b}\\after", "after"),
            (
                "\u{1b}]8;;http://evil\u{1b}\\link\u{1b}]8;;\u{1b}\\",
                "link",
            ),
            ("\u{1b}Pq#0;2\u{1b}\\after", "after"),
            ("\u{1b}(B\u{1b}cafter", "after"),
            ("\u{9b}31mred\u{9d}0;t\u{9c}after", "redafter"),
            ("\u{1b}]0;never closed\nnext", "0;never closed\nnext"),
            ("\u{1b}", ""),
            ("\u{1b}[", ""),
            ("10%\r20%\r\n", "10%\n20%\n"),
            ("bell\u{7} back\u{8} null\0", "bell� back� null�"),
            ("a\u{202e}b\u{2066}c\u{200b}d\u{feff}", "a�b�c�d�"),
            ("tag\u{e0041}s", "tag�s"),
            ("tab\tand\nline", "tab\tand\nline"),
        ] {
            assert_eq!(text(raw), safe, "{raw:?}");
        }
    }

    #[test]
    fn one_line_stays_one_line() {
        assert_eq!(line(" a\r\nb\tc\u{2028}d\n"), "a b c d");
    }

    #[test]
    fn output_never_contains_control_characters() {
        for high in 0..=0x2fff_u32 {
            let Some(c) = char::from_u32(high) else {
                continue;
            };
            for raw in [format!("{c}"), format!("\u{1b}{c}x"), format!("\u{1b}[{c}")] {
                let safe = text(&raw);
                assert!(
                    safe.chars()
                        .all(|c| c == '\n' || c == '\t' || !c.is_control()),
                    "{raw:?} became {safe:?}"
                );
            }
        }
    }
}
