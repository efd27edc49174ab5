//! Escapes characters that change how text is displayed: C1 controls and DEL, which terminals
//! interpret, bidirectional controls, which reorder the displayed text, and line separators.
//!
//! [`escape_json`] is for JSON and is lossless. [`escape_text`] is for files that users print, and
//! replaces each such character with its code point. Terminal output has its own stricter rules.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns whether a character changes how the text around it is displayed. C0 controls are
/// excluded: JSON never contains them, and line breaks are part of a file.
fn is_deceptive(c: char) -> bool {
    matches!(c,
        '\u{7f}'..='\u{9f}'
        | '\u{61c}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}')
}

/// Escapes deceptive characters in a JSON document. They occur only inside its strings.
pub fn escape_json(document: &str) -> Cow<'_, str> {
    escape(document, is_deceptive, |c, out| {
        let _ = write!(out, "\\u{:04x}", u32::from(c));
    })
}

/// Escapes deceptive characters and C0 controls except line breaks and tabs, as in `\u{202e}`.
pub fn escape_text(text: &str) -> Cow<'_, str> {
    let is_escaped = |c: char| is_deceptive(c) || (c.is_control() && !matches!(c, '\n' | '\t'));
    escape(text, is_escaped, |c, out| {
        let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
    })
}

/// Names one character in a message: as itself, or by its code point if it cannot be seen.
pub fn name_character(c: char) -> String {
    if c == ' ' {
        "a space".to_owned()
    } else if c.is_control() || c.is_whitespace() || is_deceptive(c) {
        format!("U+{:04X}", u32::from(c))
    } else {
        format!("`{c}`")
    }
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

    /// C1 controls and DEL, bidirectional controls, and line separators.
    fn deceptive() -> impl Iterator<Item = char> {
        ('\u{7f}'..='\u{9f}')
            .chain('\u{202a}'..='\u{202e}')
            .chain('\u{2066}'..='\u{2069}')
            .chain(['\u{61c}', '\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}'])
    }

    #[test]
    fn escaped_json_parses_to_the_same_value() {
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
    fn text_shows_deceptive_characters_as_code_points() {
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
