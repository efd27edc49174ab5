//! Keeps what a program prints short.

use serde_json::Value;

/// The longest text, in bytes.
const TEXT: usize = 2048;
/// The longest label, in characters.
const LABEL: usize = 200;
/// The longest message of a person, in bytes: it is compared with what was sent.
const MESSAGE: usize = 64 * 1024;

/// Shortens words.
pub(super) fn text(words: &str) -> String {
    shorten(words.trim(), TEXT)
}

/// Shortens a message that was sent.
pub(super) fn message(words: &str) -> String {
    shorten(words, MESSAGE)
}

/// Makes one short line.
pub(super) fn label(words: &str) -> String {
    // More bytes than the longest label has; the rest need not be looked at.
    let words = &words[..words.floor_char_boundary(LABEL * 8)];
    let mut line: String = words.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(LABEL) {
        let last = line[..end].char_indices().next_back();
        line.truncate(last.map_or(0, |(start, _)| start));
        line.push('…');
    }
    line
}

/// Returns the text under a key; an empty one if there is none.
pub(super) fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Returns the last line that says something.
pub(super) fn last_line(words: &str) -> &str {
    let mut lines = words.lines().map(str::trim);
    lines.rfind(|line| !line.is_empty()).unwrap_or_default()
}

fn shorten(words: &str, max: usize) -> String {
    if words.len() <= max {
        return words.to_owned();
    }
    let end = words.floor_char_boundary(max - '…'.len_utf8());
    format!("{}…", &words[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_cut_between_characters() {
        assert_eq!(text("  short\n"), "short");
        let long = text(&"ä".repeat(5000));
        assert_eq!((long.len(), long.chars().last()), (2047, Some('…')));
        assert_eq!(label("a\n  b\tc"), "a b c");
        let long = label(&"ä ".repeat(500_000));
        assert_eq!(
            (long.chars().count(), long.chars().last()),
            (200, Some('…'))
        );
        assert_eq!(label(&"x".repeat(200)).chars().count(), 200);
        assert_eq!(last_line("a\nb \n\n"), "b");
        assert_eq!(last_line("\n"), "");
    }
}
