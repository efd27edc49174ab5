//! Writes headings, paragraphs and fenced text, separated by one empty line.

use super::excerpt::{Excerpt, inline_name};

/// Accumulates a prompt's user message.
#[derive(Debug, Default)]
pub(crate) struct PromptWriter {
    text: String,
}

impl PromptWriter {
    /// Starts a part.
    pub(crate) fn heading(&mut self, heading: &str) {
        self.push_block(&format!("## {heading}"));
    }

    /// Adds text written by ralph.
    pub(crate) fn paragraph(&mut self, text: &str) {
        self.push_block(text);
    }

    /// Adds external text, fenced under its name.
    pub(crate) fn quote(&mut self, file: &str, excerpt: &Excerpt) {
        if excerpt.text.is_empty() {
            self.push_block("(none)");
        } else {
            self.push_block(&fenced(&inline_name(file), &excerpt.text));
        }
    }

    /// Returns the message.
    pub(crate) fn finish(self) -> String {
        self.text
    }

    fn push_block(&mut self, block: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(block);
        self.text.push('\n');
    }
}

/// Wraps text in a fence that is longer than any run of backticks in it.
fn fenced(info: &str, text: &str) -> String {
    let longest = text
        .split(|char| char != '`')
        .map(str::len)
        .max()
        .unwrap_or(0);
    let fence = "`".repeat(3.max(longest + 1));
    format!("{fence}{info}\n{text}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_the_fences_in_its_text() {
        for (text, fence) in [
            ("plain", "```"),
            ("`a` and ``b``", "```"),
            ("```\nx\n```", "````"),
            ("x ``````", "```````"),
        ] {
            assert_eq!(fenced("f", text), format!("{fence}f\n{text}\n{fence}"));
        }
    }
}
