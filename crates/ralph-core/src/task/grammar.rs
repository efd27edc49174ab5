//! Small grammars of a body: milestone headings, verify lines, checkbox ids.

use crate::lint::to_u32;

/// The offsets at which lines start.
pub(super) struct LineIndex {
    starts: Vec<usize>,
    first: u32,
}

impl LineIndex {
    /// Indexes `text`; `first` is the number of its first line.
    pub(super) fn new(text: &str, first: u32) -> Self {
        let after_breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            starts: std::iter::once(0).chain(after_breaks).collect(),
            first,
        }
    }

    /// Returns the line number of an offset.
    pub(super) fn line_number(&self, at: usize) -> u32 {
        let index = self.starts.partition_point(|start| *start <= at);
        self.first + to_u32(index.saturating_sub(1))
    }

    /// Returns the rest of a line from an offset on, or the whole line if the offset is in another.
    pub(super) fn rest_of_line<'t>(&self, text: &'t str, number: u32, from: usize) -> &'t str {
        let index = number.saturating_sub(self.first) as usize;
        let start = self.starts.get(index).copied().unwrap_or(text.len());
        let end = self.starts.get(index + 1).copied().unwrap_or(text.len());
        let from = if (start..end).contains(&from) {
            from
        } else {
            start
        };
        &text[from..end]
    }
}

/// Returns the offset after the bullet or number of a list item that starts at `at`.
pub(super) fn after_bullet(text: &str, at: usize) -> usize {
    let item = text[at..].trim_start_matches([' ', '\t']);
    let number = item.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = number
        .strip_prefix(['-', '*', '+', '.', ')'])
        .unwrap_or(number);
    text.len() - rest.len()
}

/// Returns the title from a heading, without `Task:`.
pub(super) fn title(heading: &str) -> Option<String> {
    let heading = heading.trim();
    let title = heading.strip_prefix("Task:").unwrap_or(heading).trim();
    (!title.is_empty()).then(|| title.to_owned())
}

/// Splits `Milestone M1 — Behavior` into id and title. The dash may be `-`, `:` or missing.
pub(super) fn milestone_heading(heading: &str) -> Option<(&str, &str)> {
    let rest = strip_word(heading.trim(), "milestone")?;
    let id_and_title = rest.trim_start();
    if id_and_title.len() == rest.len() {
        return None;
    }
    let in_id = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_');
    let id_end = id_and_title.find(|c| !in_id(c));
    let (id, rest) = id_and_title.split_at(id_end.unwrap_or(id_and_title.len()));
    let rest = rest.trim_start();
    let title = rest.trim_start_matches(['—', '–', '-', ':']);
    let separated = rest.is_empty() || title.len() < rest.len();
    (separated && !id.is_empty()).then_some((id, title.trim()))
}

/// Returns the text after `verify:` if a line starts with it; the word may be emphasised.
pub(super) fn verify_line(line: &str) -> Option<&str> {
    const MARKS: [char; 2] = ['*', '_'];
    let word = line.trim_start_matches(MARKS);
    let rest = strip_word(word, "verify")?;
    if word.len() == line.len() {
        return rest.strip_prefix(':').map(str::trim);
    }
    let rest = rest.trim_start_matches(MARKS).strip_prefix(':')?;
    Some(rest.trim_start_matches(MARKS).trim())
}

/// Strips a word, ignoring case.
fn strip_word<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let (head, rest) = text.split_at_checked(word.len())?;
    head.eq_ignore_ascii_case(word).then_some(rest)
}

/// Splits the text of a checkbox into its id, if any, and the rest.
///
/// An id is up to three capital letters and numbers with dots (`M1.2`), one capital letter and a
/// number (`T7`), or, with a colon after it, up to three capital letters and a number (`AC-3:`). It
/// may be emphasised.
pub(super) fn split_id(text: &str) -> (Option<&str>, String) {
    let text = text.trim();
    let (token, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let id = token.trim_matches(['*', '_', '`', ':', '.', ')', '(', '[', ']']);
    let colon = token.trim_end_matches(['*', '_', '`']).ends_with(':');
    if !is_id(id, colon) {
        return (None, text.to_owned());
    }
    // `**M1.1 Foo** works`: the emphasis belongs to the rest.
    let opening = &token[..token.len() - token.trim_start_matches(['*', '_']).len()];
    let opening = if token.len() > opening.len() && token.ends_with(opening) {
        ""
    } else {
        opening
    };
    let rest = rest.trim_start().trim_start_matches(['—', '–']);
    let rest = rest.strip_prefix("- ").unwrap_or(rest).trim_start();
    (Some(id), format!("{opening}{rest}"))
}

fn is_id(token: &str, colon: bool) -> bool {
    let numbers = token.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let letters = token.len() - numbers.len();
    let (numbers, dashed) = match numbers.strip_prefix('-') {
        Some(rest) => (rest, true),
        None => (numbers, false),
    };
    let mut parts = numbers.split('.');
    let numeric = parts.all(|part| {
        (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    });
    let dotted = numbers.contains('.') && !dashed;
    let short = letters == 1 && !dashed;
    (1..=3).contains(&letters) && numeric && token.len() <= 24 && (dotted || short || colon)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_milestone_headings() {
        for (heading, expected) in [
            ("Milestone M1 — Behavior", Some(("M1", "Behavior"))),
            ("Milestone M1 – Behavior", Some(("M1", "Behavior"))),
            (
                "Milestone M2 - Quality gates",
                Some(("M2", "Quality gates")),
            ),
            ("Milestone M2-Quality", Some(("M2", "Quality"))),
            ("milestone 3: Docs: all", Some(("3", "Docs: all"))),
            ("Milestone M4", Some(("M4", ""))),
            ("Milestone M1 notes", None),
            ("Milestones", None),
            ("Milestone", None),
            ("Milestone — x", None),
            ("Context", None),
        ] {
            assert_eq!(milestone_heading(heading), expected, "{heading}");
        }
    }

    #[test]
    fn recognises_verify_lines() {
        for (line, expected) in [
            ("verify: `npm test`", Some("`npm test`")),
            ("Verify:npm test", Some("npm test")),
            ("**verify:** npm test", Some("npm test")),
            ("**Verify**: npm test", Some("npm test")),
            ("verify: *.sh", Some("*.sh")),
            ("verify:", Some("")),
            ("verify that it works", None),
            ("verified: x", None),
            ("é", None),
        ] {
            assert_eq!(verify_line(line), expected, "{line}");
        }
    }

    #[test]
    fn splits_checkbox_ids() {
        for (text, id, rest) in [
            ("M1.1 Foo works", Some("M1.1"), "Foo works"),
            ("M1.1: Foo works", Some("M1.1"), "Foo works"),
            ("M1.1 — Foo works", Some("M1.1"), "Foo works"),
            ("M1.1 - Foo works", Some("M1.1"), "Foo works"),
            ("**M1.1** Foo works", Some("M1.1"), "Foo works"),
            ("**M1.1:** Foo works", Some("M1.1"), "Foo works"),
            ("**M1.1 Foo** works", Some("M1.1"), "**Foo** works"),
            ("AC1.2.3 Foo", Some("AC1.2.3"), "Foo"),
            ("T7 Foo", Some("T7"), "Foo"),
            ("AC-3: Foo", Some("AC-3"), "Foo"),
            ("M1.1", Some("M1.1"), ""),
            ("UTF-8 is accepted", None, "UTF-8 is accepted"),
            ("MD5 is gone", None, "MD5 is gone"),
            ("Python3.12 runs", None, "Python3.12 runs"),
            ("A box", None, "A box"),
            ("1.2 Foo", None, "1.2 Foo"),
            ("M1. Foo", Some("M1"), "Foo"),
            ("M1..2 Foo", None, "M1..2 Foo"),
            ("", None, ""),
        ] {
            assert_eq!(split_id(text), (id, rest.to_owned()), "{text}");
        }
    }

    #[test]
    fn finds_the_offset_after_a_bullet() {
        for (item, expected) in [
            ("- x", " x"),
            ("  * x", " x"),
            ("12. x", " x"),
            ("3) x", " x"),
        ] {
            assert_eq!(&item[after_bullet(item, 0)..], expected);
        }
    }
}
