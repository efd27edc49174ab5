//! Truncates and sanitises text from a model for display and for prompts.

/// Returns the longest prefix of `text` with at most `bytes` bytes.
pub(super) fn truncate_bytes(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Returns the first line of `text`, at most `chars` characters long. Replaces control characters
/// and characters that hide or reorder text; marks truncation with an ellipsis.
pub(super) fn one_line(text: &str, chars: usize) -> String {
    let text = text.trim();
    let (line, has_more) = match text.split_once('\n') {
        Some((line, rest)) => (line.trim_end(), !rest.is_empty()),
        None => (text, false),
    };
    let mut shown: String = line.chars().take(chars).map(sanitize_char).collect();
    if has_more || line.chars().nth(chars).is_some() {
        if let Some((last, _)) = shown.char_indices().nth(chars.saturating_sub(1)) {
            shown.truncate(last);
        }
        shown.push('…');
    }
    shown
}

fn sanitize_char(c: char) -> char {
    let reorders_or_hides = matches!(
        c,
        '\u{061c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
    );
    match c {
        '\t' => ' ',
        c if c.is_control() || reorders_or_hides => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncation_keeps_whole_characters() {
        assert_eq!(truncate_bytes("aé", 3), "aé");
        assert_eq!(truncate_bytes("aé", 2), "a");
        assert_eq!(truncate_bytes("é", 0), "");
    }

    #[test]
    fn one_line_replaces_control_characters_and_marks_truncation() {
        for (text, line) in [
            ("npm test", "npm test"),
            ("  a\tb  ", "a b"),
            ("first\nsecond", "first…"),
            ("first\r\nsecond", "first…"),
            ("only\n", "only"),
            ("\u{1b}[2Jx\u{7}\u{9b}", "�[2Jx��"),
            ("a\rb", "a�b"),
            ("a\u{202e}b\u{200b}", "a�b�"),
            ("1234567890", "1234567890"),
            ("12345678901", "123456789…"),
            ("1234567890\nx", "123456789…"),
            ("éééééééééééé", "ééééééééé…"),
            ("", ""),
        ] {
            assert_eq!(one_line(text, 10), line, "{text:?}");
        }
    }
}
