//! Removes the effects that text of a model or of an issue has on a source host: notifications,
//! links to other issues, closed issues, hidden text, images that report a visit.
//!
//! The text stays readable. Invisible zero-width spaces and backslashes end the syntax of a mention
//! or a link, and code spans and code blocks stay as they are. Code is recognised only where every
//! Markdown parser agrees; everywhere else text inside backticks is treated like other text.

mod commit;
mod line;
mod references;

pub use commit::{closing_references, neutralize_commit};
use line::LineWriter;

use crate::printable;

/// Separates a character from the syntax that it would start.
const BREAK: char = '\u{200b}';

/// Neutralises Markdown of one or more lines. References to the run's own issue stay.
pub fn neutralize(text: &str, own_issue: Option<u64>) -> String {
    let text = visible(text);
    let mut out = String::with_capacity(text.len() + 64);
    let mut fence: Option<CodeFence> = None;
    let mut writer = LineWriter::new(own_issue);
    for line in text.split_inclusive('\n') {
        let content = line.strip_suffix('\n').unwrap_or(line);
        match fence {
            Some(open) => {
                if open.is_closed_by(content) {
                    fence = None;
                    // Parsers disagree about whitespace around the end of a block.
                    open.push(&mut out);
                } else {
                    out.push_str(content);
                }
            }
            None => match CodeFence::opened_by(content) {
                Some(opened) => {
                    fence = Some(opened);
                    out.push_str(content);
                }
                None => writer.write(content, &mut out),
            },
        }
        if line.ends_with('\n') {
            out.push('\n');
        }
    }
    if let Some(open) = fence {
        // Otherwise the text after this one would be part of the code.
        if !out.ends_with('\n') {
            out.push('\n');
        }
        open.push(&mut out);
        out.push('\n');
    }
    out
}

/// Neutralises text for one line of Markdown, such as a list item or a cell of a table.
pub fn neutralize_line(text: &str, own_issue: Option<u64>) -> String {
    let text = visible(text);
    let one_line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let mut out = String::with_capacity(one_line.len() + 16);
    LineWriter::new(own_issue).write_embedded(one_line.trim(), &mut out);
    out
}

/// Neutralises the title of a pull request, which is no Markdown but becomes the message of a merge.
pub fn neutralize_title(text: &str, own_issue: Option<u64>) -> String {
    let text = visible(text);
    let one_line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    references::break_references(one_line.trim(), own_issue)
}

/// Escapes controls and reordering characters, and removes characters without any width.
fn visible(text: &str) -> String {
    let is_hidden = |c: char| {
        matches!(c,
            '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{ad}' | '\u{e0000}'..='\u{e007f}')
    };
    let text: String = text.replace("\r\n", "\n");
    let text: String = text.chars().filter(|c| !is_hidden(*c)).collect();
    printable::escape_text(&text).into_owned()
}

/// A line that starts a code block. Only fences without indentation are recognised, because the end
/// of the others depends on the list or quotation around them; see [`LineWriter`].
#[derive(Debug, Clone, Copy)]
struct CodeFence {
    character: char,
    length: usize,
}

impl CodeFence {
    fn opened_by(line: &str) -> Option<Self> {
        let character = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = line.chars().take_while(|c| *c == character).count();
        let info = line.get(length..)?;
        let is_fence = length >= 3 && !(character == '`' && info.contains('`'));
        is_fence.then_some(Self { character, length })
    }

    fn push(self, out: &mut String) {
        out.extend(std::iter::repeat_n(self.character, self.length));
    }

    fn is_closed_by(self, line: &str) -> bool {
        let rest = line.trim_start_matches(' ');
        let indentation = line.len() - rest.len();
        let length = rest.chars().take_while(|c| *c == self.character).count();
        let after = rest.get(length..).unwrap_or_default();
        indentation <= 3 && length >= self.length && after.trim_matches([' ', '\t']).is_empty()
    }
}

#[cfg(test)]
mod tests;
