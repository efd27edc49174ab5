//! A page of headings, sentences and fenced texts, with one empty line between them.

use super::excerpt::{Excerpt, inline_name};

/// A prompt's user message while it is written.
#[derive(Debug, Default)]
pub(crate) struct PromptWriter {
    text: String,
}

impl PromptWriter {
    /// Starts a part.
    pub(crate) fn heading(&mut self, heading: &str) {
        self.push_block(&format!("## {heading}"));
    }

    /// Adds the program's own words.
    pub(crate) fn paragraph(&mut self, words: &str) {
        self.push_block(words);
    }

    /// Adds a text that comes from outside, fenced under its name.
    pub(crate) fn quote(&mut self, file: &str, excerpt: &Excerpt) {
        if excerpt.text.is_empty() {
            self.push_block("(none)");
        } else {
            self.push_block(&fenced(&inline_name(file), &excerpt.text));
        }
    }

    /// Returns the page.
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

/// Puts a fence around a text that is longer than any run of backticks in it.
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
    fn a_fence_is_longer_than_what_it_holds() {
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
