//! One line of output: pieces of text with a meaning, painted only at the very end.
//!
//! Every piece is sanitised when it is put in, so nothing that is shown can carry an escape
//! sequence of its own; the only ones are those that painting adds.

use super::sanitize;
use super::width;

/// What a piece of text means to the reader. Colour never carries a meaning alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary text.
    Plain,
    /// What matters most in its line.
    Strong,
    /// What can be skipped.
    Quiet,
    /// It went well.
    Good,
    /// It went wrong.
    Bad,
    /// Somebody should look.
    Warn,
    /// A heading or a name.
    Accent,
}

impl Tone {
    fn sgr_code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "1",
            Self::Quiet => "2",
            Self::Good => "32",
            Self::Bad => "31",
            Self::Warn => "33",
            Self::Accent => "36",
        }
    }
}

/// Whether colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// They are.
    Used,
    /// They are not: no escape sequence at all is printed.
    Unused,
}

/// One line of output.
#[derive(Debug, Clone, Default)]
pub struct StyledLine {
    margin: Option<(Tone, &'static str)>,
    spans: Vec<(Tone, String)>,
    right: String,
    wrapped: Option<(Tone, String)>,
}

impl StyledLine {
    /// Starts an empty line.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a line with ordinary text.
    pub fn from_text(text: &str) -> Self {
        Self::new().plain(text)
    }

    /// Adds text with a tone. Spaces at its ends stay, they separate pieces.
    #[must_use]
    pub fn span(mut self, tone: Tone, text: &str) -> Self {
        let safe = sanitize::text(text).replace(['\n', '\t'], " ");
        self.spans.push((tone, safe));
        self
    }

    /// Adds ordinary text.
    #[must_use]
    pub fn plain(self, text: &str) -> Self {
        self.span(Tone::Plain, text)
    }

    /// Adds what matters most.
    #[must_use]
    pub fn strong(self, text: &str) -> Self {
        self.span(Tone::Strong, text)
    }

    /// Adds what can be skipped.
    #[must_use]
    pub fn quiet(self, text: &str) -> Self {
        self.span(Tone::Quiet, text)
    }

    /// Draws something at the left edge, also of what goes on below.
    #[must_use]
    pub fn margin(mut self, tone: Tone, text: &'static str) -> Self {
        self.margin = Some((tone, text));
        self
    }

    /// Puts the whole line two columns further to the right.
    #[must_use]
    pub fn indented(mut self) -> Self {
        self.spans.insert(0, (Tone::Plain, "  ".to_owned()));
        self
    }

    /// Puts a text at the right edge, such as a duration; without a width it follows in brackets.
    #[must_use]
    pub fn right_aligned(mut self, text: &str) -> Self {
        self.right = sanitize::line(text);
        self
    }

    /// Ends the line with a text that must be read whole: where it does not fit, it goes on below.
    #[must_use]
    pub fn wrapped(mut self, tone: Tone, text: &str) -> Self {
        self.wrapped = Some((tone, sanitize::line(text)));
        self
    }

    /// Returns the line, cut and folded to `width` columns if there is a width.
    pub fn render(&self, colour: Colour, width: Option<usize>) -> String {
        let (tone, text) = self.margin.unwrap_or((Tone::Plain, ""));
        let width = width.map(|width| width.saturating_sub(width::columns(text)));
        let margin = paint(text, tone, colour);
        let body = self.render_body(colour, width);
        let text = format!("{margin}{}", body.replace('\n', &format!("\n{margin}")));
        text.trim_end_matches(' ').to_owned()
    }

    fn render_body(&self, colour: Colour, width: Option<usize>) -> String {
        let head = self.render_left(colour, width);
        let Some((tone, text)) = &self.wrapped else {
            return head;
        };
        let indent = width::columns(&self.render_left(Colour::Unused, width));
        let room = width.map(|width| width.saturating_sub(indent).max(20));
        let pieces = match room {
            Some(room) => width::wrap(text, room),
            None => vec![text.clone()],
        };
        let painted: Vec<String> = pieces
            .iter()
            .map(|piece| paint(piece, *tone, colour))
            .collect();
        let below = format!("\n{}", " ".repeat(indent));
        format!("{head}{}", painted.join(&below))
    }

    fn render_left(&self, colour: Colour, width: Option<usize>) -> String {
        let reserved = if self.right.is_empty() {
            0
        } else {
            width::columns(&self.right) + 1
        };
        let room = width.map(|width| width.saturating_sub(reserved));
        let mut text = String::new();
        let mut used = 0;
        for (tone, piece) in &self.spans {
            let piece = match room {
                Some(room) => width::truncate(piece, room.saturating_sub(used)),
                None => piece.clone(),
            };
            used += width::columns(&piece);
            text.push_str(&paint(&piece, *tone, colour));
        }
        match room {
            _ if self.right.is_empty() => {}
            Some(room) => {
                text.push_str(&" ".repeat(room.saturating_sub(used) + 1));
                text.push_str(&paint(&self.right, Tone::Quiet, colour));
            }
            None => text.push_str(&paint(&format!(" ({})", self.right), Tone::Quiet, colour)),
        }
        text
    }
}

fn paint(text: &str, tone: Tone, colour: Colour) -> String {
    let code = tone.sgr_code();
    if colour == Colour::Unused || code.is_empty() || text.is_empty() {
        text.to_owned()
    } else {
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_truncated_before_it_is_coloured() {
        let line = StyledLine::from_text("ab")
            .span(Tone::Bad, "c\u{1b}[31md\ne")
            .quiet("fgh")
            .right_aligned("12s");
        assert_eq!(line.render(Colour::Unused, None), "abcd efgh (12s)");
        assert_eq!(line.render(Colour::Unused, Some(16)), "abcd efgh    12s");
        assert_eq!(line.render(Colour::Unused, Some(12)), "abcd ef… 12s");
        assert_eq!(
            line.render(Colour::Used, Some(9)),
            "ab\u{1b}[31mcd…\u{1b}[0m \u{1b}[2m12s\u{1b}[0m"
        );
    }

    #[test]
    fn wrapped_text_continues_on_the_next_line() {
        let line =
            StyledLine::from_text("  ✗ ").wrapped(Tone::Plain, "one two three four five six seven");
        assert_eq!(
            line.render(Colour::Unused, Some(24)),
            "  ✗ one two three four\n    five six seven"
        );
        assert_eq!(
            line.render(Colour::Unused, None),
            "  ✗ one two three four five six seven"
        );
    }
}
