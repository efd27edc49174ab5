//! Cuts text to its cap, at line ends, and names the source of the full text.

use std::borrow::Cow;

use super::cap::{ExcerptCap, KeptEnd, MAX_NAME_BYTES};
use super::sanitize::sanitize;

const GAP: &str = " … ";

/// The part of a file or output that enters the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Excerpt {
    /// Whole lines without the last newline; may be empty.
    pub(crate) text: String,
    /// Whether text is missing and a marker was inserted.
    pub(crate) is_cut: bool,
}

/// Sanitizes and cuts text. `full` names the source of the full text.
pub(crate) fn excerpt(text: &str, cap: &ExcerptCap, full: &str) -> Excerpt {
    let clean = sanitize(text);
    let clean = clean.trim_end();
    let mut lines = narrowed(clean, cap.line_bytes.min(cap.bytes));
    let fits = count_fitting(lines.iter(), cap.lines, cap.bytes) == lines.len();
    let (head, tail) = match cap.keep {
        KeptEnd::Ends if !fits => {
            // No line may be larger than a half, or a half could remain empty.
            lines = narrowed(clean, cap.line_bytes.min(cap.bytes / 2));
            let (count, bytes) = (cap.lines / 2, cap.bytes / 2);
            (
                count_fitting(lines.iter(), count, bytes),
                count_fitting(lines.iter().rev(), count, bytes),
            )
        }
        KeptEnd::Head | KeptEnd::Ends => (count_fitting(lines.iter(), cap.lines, cap.bytes), 0),
        KeptEnd::Tail => (0, count_fitting(lines.iter().rev(), cap.lines, cap.bytes)),
    };
    let is_narrowed = lines.iter().any(|line| matches!(line, Cow::Owned(_)));
    let is_cut = is_narrowed || head + tail < lines.len();
    let mut kept: Vec<&str> = lines[..head].iter().map(AsRef::as_ref).collect();
    let marker = cut_marker(full);
    if is_cut {
        kept.push(&marker);
    }
    kept.extend(lines[lines.len() - tail..].iter().map(AsRef::as_ref));
    Excerpt {
        text: kept.join("\n"),
        is_cut,
    }
}

/// Returns the marker that replaces missing text and names its source.
pub(super) fn cut_marker(full: &str) -> String {
    format!("… truncated, full text: {}", inline_name(full))
}

/// Returns a name in one short line without backticks, suitable for a heading or a fence.
pub(super) fn inline_name(text: &str) -> String {
    // Cut first, so that a huge name is not sanitized in full. The steps below never lengthen it.
    let line = sanitize(&narrow(text, MAX_NAME_BYTES));
    let line = line.replace(['\n', '\t'], " ").replace('`', "'");
    line.trim().to_owned()
}

/// Returns the lines; lines that are too wide lose their middle. `limit` includes the line end.
fn narrowed(text: &str, limit: usize) -> Vec<Cow<'_, str>> {
    text.lines().map(|line| narrow(line, limit - 1)).collect()
}

/// Removes the middle of text that is longer than `limit` bytes.
fn narrow(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    let half = (limit - GAP.len()) / 2;
    let start = &text[..text.floor_char_boundary(half)];
    let end = &text[text.ceil_char_boundary(text.len() - half)..];
    Cow::Owned([start, GAP, end].concat())
}

/// Returns how many lines fit into the given number of lines and bytes.
fn count_fitting<'a>(
    lines: impl Iterator<Item = &'a Cow<'a, str>>,
    max_lines: usize,
    max_bytes: usize,
) -> usize {
    let mut bytes = 0;
    lines
        .take(max_lines)
        .take_while(|line| {
            bytes += line.len() + 1;
            bytes <= max_bytes
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cap(keep: KeptEnd) -> ExcerptCap {
        ExcerptCap {
            keep,
            lines: 4,
            bytes: 40,
            line_bytes: 20,
        }
    }

    fn cut(text: &str, keep: KeptEnd) -> String {
        excerpt(text, &cap(keep), "FILE").text
    }

    #[test]
    fn texts_that_fit_are_unchanged() {
        for keep in [KeptEnd::Head, KeptEnd::Tail, KeptEnd::Ends] {
            for text in [
                "",
                "a",
                "a\n\nb\nc",
                "9 bytes .\n9 bytes .\n9 bytes .\n9 bytes .",
            ] {
                let whole = Excerpt {
                    text: text.to_owned(),
                    is_cut: false,
                };
                assert_eq!(excerpt(text, &cap(keep), "FILE"), whole);
                assert_eq!(excerpt(&format!("{text}\n \n"), &cap(keep), "FILE"), whole);
            }
        }
    }

    #[test]
    fn lines_beyond_the_cap_are_replaced_by_a_marker() {
        let text = "1\n2\n3\n4\n5\n6";
        let marker = "… truncated, full text: FILE";
        assert_eq!(cut(text, KeptEnd::Head), format!("1\n2\n3\n4\n{marker}"));
        assert_eq!(cut(text, KeptEnd::Tail), format!("{marker}\n3\n4\n5\n6"));
        assert_eq!(cut(text, KeptEnd::Ends), format!("1\n2\n{marker}\n5\n6"));
    }

    #[test]
    fn bytes_beyond_the_cap_are_cut_at_the_ends_of_lines() {
        let text = "first line .\nsecond line\nthird line .\nfourth line";
        let marker = "… truncated, full text: FILE";
        assert_eq!(
            cut(text, KeptEnd::Head),
            format!("first line .\nsecond line\nthird line .\n{marker}")
        );
        assert_eq!(
            cut(text, KeptEnd::Tail),
            format!("{marker}\nsecond line\nthird line .\nfourth line")
        );
        assert_eq!(
            cut(text, KeptEnd::Ends),
            format!("first line .\n{marker}\nfourth line")
        );
    }

    #[test]
    fn a_wide_line_loses_its_middle_between_characters() {
        let marker = "… truncated, full text: FILE";
        let wide = "ä".repeat(50);
        assert_eq!(cut(&wide, KeptEnd::Head), format!("äää … äää\n{marker}"));
        assert_eq!(cut(&wide, KeptEnd::Tail), format!("{marker}\näää … äää"));
        assert_eq!(
            cut(&format!("a\n{wide}\nz"), KeptEnd::Ends),
            format!("a\näää … äää\nz\n{marker}")
        );
    }

    #[test]
    fn two_lines_that_each_fill_the_cap_are_both_shown() {
        let cap = ExcerptCap {
            line_bytes: 40,
            ..cap(KeptEnd::Ends)
        };
        let text = format!("{}\n{}", "a".repeat(35), "b".repeat(35));
        assert_eq!(
            excerpt(&text, &cap, "FILE").text,
            "aaaaaaa … aaaaaaa\n… truncated, full text: FILE\nbbbbbbb … bbbbbbb"
        );
    }

    #[test]
    fn a_name_is_one_short_line() {
        assert_eq!(inline_name("a/b.txt"), "a/b.txt");
        assert_eq!(inline_name(" a`\n# b\u{1b}[0m\t"), "a' # b");
        assert_eq!(inline_name(&"x".repeat(10_000)).len(), 255);
    }
}
