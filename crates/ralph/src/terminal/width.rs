//! Computes the width of text on a terminal and fits it.

/// Returns the width of a sanitized line in columns.
pub fn columns(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

/// Cuts a sanitized line to at most `max` columns and marks the omission with `…`.
pub fn truncate(text: &str, max: usize) -> String {
    if columns(text) <= max {
        return text.to_owned();
    }
    let mut short = String::new();
    let mut left = max.saturating_sub(1);
    for c in text.chars() {
        let Some(rest) = left.checked_sub(char_columns(c)) else {
            break;
        };
        left = rest;
        short.push(c);
    }
    if max > 0 {
        short.push('…');
    }
    short
}

/// Breaks a sanitized line into pieces of at most `max` columns, between words if possible.
pub fn wrap(text: &str, max: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for word in text.split(' ').flat_map(|word| split_word(word, max)) {
        match pieces.last_mut() {
            Some(last) if last.is_empty() => last.push_str(&word),
            Some(last) if columns(last) + 1 + columns(&word) <= max => {
                last.push(' ');
                last.push_str(&word);
            }
            Some(_) | None => pieces.push(word),
        }
    }
    pieces
}

/// Returns the positions at which a sanitized text continues on another line: the first line has
/// `first` columns, the others have `others`. A line is broken between words if possible.
pub fn line_breaks(text: &str, first: usize, others: usize) -> Vec<usize> {
    let mut breaks = Vec::new();
    let (mut room, mut used) = (first.max(2), 0);
    let mut word_start = None;
    let mut used_before_word = 0;
    for (position, c) in text.char_indices() {
        let columns = char_columns(c);
        if c == ' ' {
            word_start = None;
        } else {
            if word_start.is_none() {
                word_start = Some(position);
                used_before_word = used;
            }
            if used + columns > room {
                let start = word_start.unwrap_or(position);
                let is_first_word = text[breaks.last().copied().unwrap_or(0)..start]
                    .trim()
                    .is_empty();
                let at = if is_first_word { position } else { start };
                used -= if is_first_word {
                    used
                } else {
                    used_before_word
                };
                breaks.push(at);
                room = others.max(2);
                word_start = Some(at);
                used_before_word = 0;
            }
        }
        used += columns;
    }
    breaks
}

/// Breaks a word that is wider than a whole line.
fn split_word(word: &str, max: usize) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut used = 0;
    for c in word.chars() {
        if used + char_columns(c) > max.max(2) {
            parts.push(String::new());
            used = 0;
        }
        used += char_columns(c);
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts
}

/// Returns the text followed by spaces up to `width` columns.
pub fn pad(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(columns(text));
    format!("{text}{}", " ".repeat(missing))
}

fn char_columns(c: char) -> usize {
    match c {
        // Combining characters.
        '\u{300}'..='\u{36f}'
        | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{fe20}'..='\u{fe2f}' => 0,
        // East Asian wide and full-width characters, and emoji.
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{303e}'
        | '\u{3041}'..='\u{a4cf}'
        | '\u{a960}'..='\u{a97f}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1f64f}'
        | '\u{1f680}'..='\u{1f6ff}'
        | '\u{1f900}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_text_fits_the_columns() {
        for (text, max, short) in [
            ("short", 5, "short"),
            ("longer", 5, "long…"),
            ("漢字漢字", 8, "漢字漢字"),
            ("漢字漢字", 7, "漢字漢…"),
            ("漢字漢字", 6, "漢字…"),
            ("e\u{301}e\u{301}e\u{301}", 3, "e\u{301}e\u{301}e\u{301}"),
            ("any", 1, "…"),
            ("any", 0, ""),
        ] {
            assert_eq!(truncate(text, max), short);
            assert!(columns(short) <= max);
        }
        assert_eq!(pad("漢", 4), "漢  ");
    }

    #[test]
    fn wrapping_breaks_between_words_and_inside_long_ones() {
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh i", 3), ["abc", "def", "gh", "i"]);
        assert_eq!(wrap("漢字漢字", 4), ["漢字", "漢字"]);
    }
}
