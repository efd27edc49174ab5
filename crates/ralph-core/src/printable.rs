//! Escapes characters that change how a text is shown: C1 controls, which terminals obey like escape
//! sequences, and bidirectional controls, which show a text in another order than it has.
//!
//! [`escape_json`] is for JSON and loses nothing: a parser reads the same characters again. [`escape_text`] is for files
//! that people print, and shows each such character by its number. Terminal output has stricter rules of
//! its own.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Tells whether a character changes how the text around it is shown. C0 controls are not among them:
/// JSON never has them, and line breaks are part of a file.
fn is_deceptive(c: char) -> bool {
    matches!(c,
        '\u{7f}'..='\u{9f}'
        | '\u{61c}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}')
}

/// Escapes such characters in a JSON document. They can only be inside of its strings.
pub fn escape_json(document: &str) -> Cow<'_, str> {
    escape(document, is_deceptive, |c, out| {
        let _ = write!(out, "\\u{:04x}", u32::from(c));
    })
}

/// Escapes such characters, and C0 controls but line breaks and tabs, in a text: `\u{202e}`.
pub fn escape_text(text: &str) -> Cow<'_, str> {
    let is_escaped = |c: char| is_deceptive(c) || (c.is_control() && !matches!(c, '\n' | '\t'));
    escape(text, is_escaped, |c, out| {
        let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
    })
}

fn escape(
    text: &str,
    is_escaped: impl Fn(char) -> bool,
    escape: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    let Some(first) = text.find(&is_escaped) else {
        return Cow::Borrowed(text);
    };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    for c in text[first..].chars() {
        if is_escaped(c) {
            escape(c, &mut out);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C1 and DEL, and the bidirectional controls.
    fn deceptive() -> impl Iterator<Item = char> {
        ('\u{7f}'..='\u{9f}')
            .chain('\u{202a}'..='\u{202e}')
            .chain('\u{2066}'..='\u{2069}')
            .chain(['\u{61c}', '\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}'])
    }

    #[test]
    fn json_keeps_its_meaning_and_shows_nothing_in_another_order() {
        for c in deceptive() {
            let value = serde_json::json!({ "path": format!("a{c}b"), format!("k{c}"): ["ümläut 漢字 👨\u{200d}👩"] });
            let raw = value.to_string();
            let safe = escape_json(&raw);
            assert!(!safe.contains(c), "{c:?}");
            let read: serde_json::Value = serde_json::from_str(&safe).unwrap();
            assert_eq!(read, value, "{c:?}");
        }
        assert!(matches!(escape_json(r#"{"plain":"✓"}"#), Cow::Borrowed(_)));
    }

    #[test]
    fn a_text_shows_each_such_character_by_its_number() {
        for c in deceptive() {
            let expected = format!("a\\u{{{:x}}}b\n\tc", u32::from(c));
            assert_eq!(escape_text(&format!("a{c}b\n\tc")), expected);
        }
        assert_eq!(escape_text("\u{1b}[31mred\r"), "\\u{1b}[31mred\\u{d}");
        assert!(matches!(
            escape_text("ümläut 漢字 👨\u{200d}👩\n"),
            Cow::Borrowed(_)
        ));
    }
}
