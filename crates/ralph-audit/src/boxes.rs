//! Finds the boxes of a Markdown text, line by line.
//!
//! A box is `[ ]` or `[x]` at the start of a list item. Boxes in code, comments and HTML do not
//! count.

/// Returns the byte offsets of the boxes' marks in a text, in order: the byte between the brackets.
pub(super) fn checkbox_marks(text: &str) -> Vec<usize> {
    let mut scan = CheckboxScanner::default();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        scan.scan_line(line.trim_end_matches('\n'), at);
        at += line.len();
    }
    scan.marks
}

/// A block of several lines that contains no boxes.
enum SkippedBlock {
    /// Fenced code, opened with this many of this character.
    Fence(char, usize),
    /// HTML until this text, or until an empty line.
    Html(Option<&'static str>),
}

#[derive(Default)]
struct CheckboxScanner {
    marks: Vec<usize>,
    /// The content columns of the enclosing list items.
    items: Vec<usize>,
    block: Option<SkippedBlock>,
    /// The number of enclosing block quotes.
    quote_depth: usize,
    /// Whether the next line may continue the previous paragraph.
    in_paragraph: bool,
}

/// The rest of a line with its offset and column.
#[derive(Clone, Copy)]
struct LineCursor<'t> {
    text: &'t str,
    at: usize,
    column: usize,
}

impl LineCursor<'_> {
    fn skip(self, bytes: usize) -> Self {
        Self {
            text: &self.text[bytes..],
            at: self.at + bytes,
            column: self.column + bytes,
        }
    }

    fn skip_blanks(self) -> Self {
        let mut rest = self;
        while let Some(blank) = rest
            .text
            .bytes()
            .next()
            .filter(|b| matches!(b, b' ' | b'\t'))
        {
            let column = match blank {
                b'\t' => (rest.column / 4 + 1) * 4,
                _ => rest.column + 1,
            };
            rest = Self {
                column,
                ..rest.skip(1)
            };
        }
        rest
    }

    /// Skips at most this many block quote markers and returns their number. Quoted text starts at
    /// the first column again.
    fn skip_quotes(self, most: usize) -> (Self, usize) {
        let mut rest = self;
        for count in 0..most {
            let Some(inner) = rest.skip_blanks().text.strip_prefix('>') else {
                return (rest, count);
            };
            let inner = inner.strip_prefix(' ').unwrap_or(inner);
            let cut = rest.text.len() - inner.len();
            rest = Self {
                column: 0,
                ..rest.skip(cut)
            };
        }
        (rest, most)
    }

    /// Returns the length of a list marker at the start, and the number of an ordered one.
    fn list_marker(self) -> Option<(usize, Option<u64>)> {
        let digits = self.text.bytes().take_while(u8::is_ascii_digit).count();
        let after = self.text.as_bytes().get(digits)?;
        let ordered = matches!(digits, 1..=9) && matches!(after, b'.' | b')');
        let plain = digits == 0 && matches!(after, b'-' | b'*' | b'+');
        let next = self.text.as_bytes().get(digits + 1);
        let ends = next.is_none_or(|b| matches!(b, b' ' | b'\t'));
        let number = match self.text[..digits].parse() {
            Ok(number) if ordered => Some(number),
            Ok(_) | Err(_) => None,
        };
        ((ordered || plain) && ends).then_some((digits + 1, number))
    }
}

impl CheckboxScanner {
    fn scan_line(&mut self, line: &str, at: usize) {
        let rest = LineCursor {
            text: line,
            at,
            column: 0,
        };
        // Inside code, a further marker is part of the code.
        let most = self.block.as_ref().map_or(usize::MAX, |_| self.quote_depth);
        let (rest, quotes) = rest.skip_quotes(most);
        let rest = rest.skip_blanks();
        self.update_quote_depth(quotes, rest);
        if self.stays_in_block(rest) {
            return;
        }
        if rest.text.is_empty() {
            self.in_paragraph = false;
            return;
        }
        let popped = self.leave_items(rest);
        let mut rest = rest;
        let mut first = true;
        while rest.column < self.content_column() + 4 && !is_thematic_break(rest.text) {
            let Some((length, number)) = rest.list_marker() else {
                break;
            };
            let after = rest.skip(length);
            let content = after.skip_blanks();
            let interrupts = number.is_none_or(|number| number == 1) && !content.text.is_empty();
            if first && self.in_paragraph && !popped && !interrupts {
                break;
            }
            first = false;
            self.in_paragraph = false;
            let is_code = content.column > after.column + 4;
            let column = if is_code || content.text.is_empty() {
                after.column + 1
            } else {
                content.column
            };
            self.items.push(column);
            rest = content;
            if is_code {
                return;
            }
            self.record_checkbox(rest);
        }
        self.open_block(rest);
    }

    fn content_column(&self) -> usize {
        self.items.last().copied().unwrap_or_default()
    }

    /// Enters or leaves block quotes, which closes blocks outside or inside them.
    fn update_quote_depth(&mut self, quotes: usize, rest: LineCursor<'_>) {
        let continues = quotes < self.quote_depth && self.continues_paragraph(rest);
        if quotes != self.quote_depth && !continues {
            self.items.clear();
            self.block = None;
            self.in_paragraph = false;
            self.quote_depth = quotes;
        }
    }

    /// Returns whether a line only continues the previous paragraph.
    fn continues_paragraph(&self, rest: LineCursor<'_>) -> bool {
        let starts = rest.list_marker().is_some()
            || is_thematic_break(rest.text)
            || block_start(rest.text).is_some();
        self.in_paragraph && !starts && !rest.text.is_empty() && !rest.text.starts_with('#')
    }

    /// Returns whether a line still belongs to code or HTML, and closes the block at its end.
    fn stays_in_block(&mut self, rest: LineCursor<'_>) -> bool {
        let outside = !rest.text.is_empty() && rest.column < self.content_column();
        match &self.block {
            None => return false,
            Some(_) if outside => {
                // Leaving a list item closes the blocks in it.
                self.block = None;
                return false;
            }
            Some(SkippedBlock::Fence(sign, length)) => {
                let signs = rest.text.chars().take_while(|c| c == sign).count();
                let bare = rest.text.trim_matches([*sign, ' ', '\t']).is_empty();
                if signs >= *length && bare && rest.column < self.content_column() + 4 {
                    self.block = None;
                }
            }
            Some(SkippedBlock::Html(end)) => {
                let ends = end.map_or(rest.text.is_empty(), |end| rest.text.contains(end));
                if ends {
                    self.block = None;
                }
            }
        }
        self.in_paragraph = false;
        true
    }

    /// Leaves the list items that a line does not belong to. Returns whether there were any.
    fn leave_items(&mut self, rest: LineCursor<'_>) -> bool {
        let before = self.items.len();
        if !self.continues_paragraph(rest) {
            self.items.retain(|content| rest.column >= *content);
        }
        self.items.len() < before
    }

    fn record_checkbox(&mut self, rest: LineCursor<'_>) {
        let bytes = rest.text.as_bytes();
        let shaped = bytes.len() >= 3
            && bytes[0] == b'['
            && matches!(bytes[1], b' ' | b'\t' | b'x' | b'X')
            && bytes[2] == b']'
            && bytes.get(3).is_none_or(|b| matches!(b, b' ' | b'\t'));
        if shaped {
            self.marks.push(rest.at + 1);
        }
    }

    /// Opens the blocks that start in the rest of a line.
    fn open_block(&mut self, rest: LineCursor<'_>) {
        let indented = rest.column >= self.content_column() + 4;
        if indented && !self.in_paragraph {
            return;
        }
        let block = if indented {
            None
        } else {
            block_start(rest.text)
        };
        self.in_paragraph =
            block.is_none() && !is_thematic_break(rest.text) && !rest.text.starts_with('#');
        if let Some(SkippedBlock::Html(Some(end))) = &block
            && rest.text.contains(end)
        {
            return;
        }
        self.block = block;
    }
}

fn is_thematic_break(text: &str) -> bool {
    ['-', '*', '_'].into_iter().any(|sign| {
        let signs = text.chars().filter(|c| *c == sign).count();
        signs >= 3 && text.chars().all(|c| c == sign || matches!(c, ' ' | '\t'))
    })
}

/// Returns the block without boxes that a line starts.
fn block_start(text: &str) -> Option<SkippedBlock> {
    for sign in ['`', '~'] {
        let length = text.chars().take_while(|c| *c == sign).count();
        let opens = length >= 3 && (sign == '~' || !text[length..].contains('`'));
        if opens {
            return Some(SkippedBlock::Fence(sign, length));
        }
    }
    if text.starts_with("<!--") {
        return Some(SkippedBlock::Html(Some("-->")));
    }
    let name = text.strip_prefix('<')?.trim_start_matches('/');
    let length = name.bytes().take_while(u8::is_ascii_alphanumeric).count();
    let name = name[..length].to_ascii_lowercase();
    HTML_BLOCKS
        .contains(&name.as_str())
        .then_some(SkippedBlock::Html(None))
}

/// The tags of HTML blocks.
const HTML_BLOCKS: [&str; 24] = [
    "blockquote",
    "body",
    "center",
    "details",
    "dd",
    "div",
    "dl",
    "dt",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "header",
    "hr",
    "li",
    "ol",
    "p",
    "section",
    "summary",
    "table",
    "td",
    "ul",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the words after the boxes that are found.
    fn found(text: &str) -> Vec<&str> {
        let word = |mark: usize| {
            text[mark + 2..]
                .split_whitespace()
                .next()
                .unwrap_or_default()
        };
        checkbox_marks(text).into_iter().map(word).collect()
    }

    #[test]
    fn a_checkbox_starts_a_list_item() {
        let text = "- [ ] a\n* [x] b\n+ [X] c\n1. [x] d\n2) [ ] e\n  - [x] f\n- - [x] g\n> - [x] h\n\
            -   [ ] i\n- text [x] no\n- [x]no\n- [-] no\n[x] no\n";
        assert_eq!(found(text), ["a", "b", "c", "d", "e", "f", "g", "h", "i"]);
        assert_eq!(checkbox_marks("- [x] a\n- [X]"), [3, 11]);
    }

    #[test]
    fn code_comments_and_html_contain_no_checkboxes() {
        for (text, expected) in [
            ("```\n- [x] no\n```\n- [x] yes\n", vec!["yes"]),
            (
                "~~~~\n- [x] no\n```\n~~~\n- [x] no\n~~~~\n- [x] yes\n",
                vec!["yes"],
            ),
            ("- [x] a\n  ```\n  - [x] no\n- [x] b\n", vec!["a", "b"]),
            (
                "- [x] a\n\n  ```\n  > - [x] no\n  ```\n- [x] b\n",
                vec!["a", "b"],
            ),
            ("    - [x] no\n\n- [x] yes\n", vec!["yes"]),
            ("- a\n\n    - [x] nested\n", vec!["nested"]),
            ("-     [x] no\n", vec![]),
            ("<!--\n- [x] no\n-->\n- [x] yes\n", vec!["yes"]),
            ("<!-- one line -->\n- [x] yes\n", vec!["yes"]),
            ("<details>\n- [x] no\n\n- [x] yes\n", vec!["yes"]),
            ("<https://example.org>\n- [x] yes\n", vec!["yes"]),
            ("`- [x] no`\n\n- [x] yes\n", vec!["yes"]),
            ("text\n2. [x] no\n\n2. [x] yes\n", vec!["yes"]),
            ("> ```\n> - [x] no\n\n- [x] yes\n", vec!["yes"]),
            ("* * *\n- [x] yes\n", vec!["yes"]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }
}
