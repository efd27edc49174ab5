//! Neutralises one line of Markdown outside of code blocks.

use super::references::{
    is_always_linked, issue_of_url, push_broken_scheme, push_reference, url_at,
};

/// Writes neutralised lines. A backtick without a partner on its line makes the rest of the
/// paragraph ambiguous, so code spans are not recognised there.
pub(super) struct LineWriter {
    own_issue: Option<u64>,
    is_ambiguous: bool,
}

impl LineWriter {
    pub(super) fn new(own_issue: Option<u64>) -> Self {
        Self {
            own_issue,
            is_ambiguous: false,
        }
    }

    /// Writes text that follows other text on its line, such as the mark of a list item.
    pub(super) fn write_embedded(&mut self, text: &str, out: &mut String) {
        if text.starts_with("```") || text.starts_with("~~~") {
            out.push('\\');
            self.is_ambiguous = true;
        }
        self.write(text, out);
    }

    /// Writes a line without its line break.
    pub(super) fn write(&mut self, line: &str, out: &mut String) {
        if line.trim().is_empty() {
            self.is_ambiguous = false;
            out.push_str(line);
            return;
        }
        let start = fence_start(line);
        let mut at = 0;
        while let Some(c) = line.get(at..).and_then(|rest| rest.chars().next()) {
            if start == Some(at) {
                // An indented fence is text: its end would depend on the list around it.
                out.push('\\');
                self.is_ambiguous = true;
            }
            at += self.write_at(line, at, c, out);
        }
    }

    /// Writes the element at a position and returns the number of bytes read.
    fn write_at(&mut self, line: &str, at: usize, c: char, out: &mut String) -> usize {
        let rest = line.get(at..).unwrap_or_default();
        if c == '`' {
            let span = self.code_span(line, at);
            out.push_str(span);
            return span.len();
        }
        if let Some(url) = url_at(line, at) {
            let before = line.get(..at).and_then(|before| before.chars().next_back());
            if let Some(length) = push_url(url, before, out) {
                return length;
            }
        }
        let next = rest.chars().nth(1);
        match (c, next) {
            ('<', Some(next)) if next.is_ascii_alphabetic() || "/!?".contains(next) => {
                out.push_str("&lt;");
                1
            }
            ('&', Some(_)) if is_entity(rest) => {
                out.push_str("&amp;");
                1
            }
            // Links and images stay visible as they are written.
            (']', Some('(' | ':' | '[')) => {
                out.push_str("]\\");
                1
            }
            ('!', Some('[')) => {
                out.push_str("!\\");
                1
            }
            _ => push_reference(line, at, c, self.own_issue, out),
        }
    }

    /// Returns the code span at a backtick, or the backticks if it is none.
    fn code_span<'a>(&mut self, line: &'a str, at: usize) -> &'a str {
        let rest = line.get(at..).unwrap_or_default();
        let length = rest.bytes().take_while(|b| *b == b'`').count();
        let run = rest.get(..length).unwrap_or_default();
        let is_escaped = line.get(..at).is_some_and(|before| before.ends_with('\\'));
        if !is_escaped && !self.is_ambiguous {
            let body = rest.get(length..).unwrap_or_default();
            if let Some(end) = find_run(body, length) {
                let span = rest.get(..length + end + length).unwrap_or_default();
                // A cell of a table ends inside of backticks, too.
                if !span.contains('|') {
                    return span;
                }
            }
        }
        self.is_ambiguous = true;
        run
    }
}

/// Writes an address, or its start, if it is a reference to an issue or always a link. Returns the
/// number of bytes read.
fn push_url(url: &str, before: Option<char>, out: &mut String) -> Option<usize> {
    if issue_of_url(url).is_some() {
        return Some(push_broken_scheme(url, out));
    }
    is_always_linked(url, before).then(|| {
        out.push_str(url);
        url.len()
    })
}

/// Returns the position of the next backticks of exactly this number.
fn find_run(text: &str, length: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(offset) = bytes.get(at..)?.iter().position(|b| *b == b'`') {
        let start = at + offset;
        let run = bytes
            .get(start..)?
            .iter()
            .take_while(|b| **b == b'`')
            .count();
        if run == length {
            return Some(start);
        }
        at = start + run;
    }
    None
}

/// Returns the position of a fence behind the marks of lists, quotations and indentation.
fn fence_start(line: &str) -> Option<usize> {
    let rest = line.trim_start_matches(|c: char| {
        c.is_whitespace() || c.is_ascii_digit() || ">*+-.)".contains(c)
    });
    let at = line.len() - rest.len();
    let is_fence = rest.starts_with("```") || rest.starts_with("~~~");
    (is_fence && at > 0).then_some(at)
}

/// Returns whether text starts with a character reference, such as `&commat;` or `&#64;`.
fn is_entity(text: &str) -> bool {
    let name = text.get(1..).unwrap_or_default();
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '#');
    end.is_some_and(|end| end > 0 && name.get(end..).is_some_and(|rest| rest.starts_with(';')))
}
