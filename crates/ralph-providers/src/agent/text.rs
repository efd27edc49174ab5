//! Truncates program output.

use serde_json::Value;

/// Maximum text length, in bytes.
const MAX_TEXT_BYTES: usize = 2048;
/// Maximum label length, in characters.
const MAX_LABEL_CHARS: usize = 200;
/// Maximum length of a user message, in bytes: it is compared with the sent message.
const MAX_MESSAGE_BYTES: usize = 64 * 1024;

/// Truncates a text.
pub(super) fn truncate_text(text: &str) -> String {
    truncate(text.trim(), MAX_TEXT_BYTES)
}

/// Truncates a message that was sent.
pub(super) fn truncate_message(text: &str) -> String {
    truncate(text, MAX_MESSAGE_BYTES)
}

/// Condenses text to one short line.
pub(super) fn short_label(text: &str) -> String {
    // Covers the longest possible label; the rest is irrelevant.
    let text = &text[..text.floor_char_boundary(MAX_LABEL_CHARS * 8)];
    let mut line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(MAX_LABEL_CHARS) {
        let last = line[..end].char_indices().next_back();
        line.truncate(last.map_or(0, |(start, _)| start));
        line.push('…');
    }
    line
}

/// Returns the string under a key, or an empty string.
pub(super) fn string_field<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Returns the last nonempty line.
pub(super) fn last_line(text: &str) -> &str {
    let mut lines = text.lines().map(str::trim);
    lines.rfind(|line| !line.is_empty()).unwrap_or_default()
}

fn truncate(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(max - '…'.len_utf8());
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_truncated_between_characters() {
        assert_eq!(truncate_text("  short\n"), "short");
        let long = truncate_text(&"ä".repeat(5000));
        assert_eq!((long.len(), long.chars().last()), (2047, Some('…')));
        assert_eq!(short_label("a\n  b\tc"), "a b c");
        let long = short_label(&"ä ".repeat(500_000));
        assert_eq!(
            (long.chars().count(), long.chars().last()),
            (200, Some('…'))
        );
        assert_eq!(short_label(&"x".repeat(200)).chars().count(), 200);
        assert_eq!(last_line("a\nb \n\n"), "b");
        assert_eq!(last_line("\n"), "");
    }
}
