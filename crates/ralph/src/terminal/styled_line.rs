//! A line of output: pieces of text with a tone, rendered at the end.
//!
//! Every piece is sanitized when it is added, so it cannot contain escape sequences; the only ones
//! in the output are those that rendering adds.

use super::sanitize;
use super::width;

/// The meaning of a piece of text. Colour is never the only indication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary text.
    Plain,
    /// The most important text of its line.
    Strong,
    /// Text of low importance.
    Quiet,
    /// A success.
    Good,
    /// A failure.
    Bad,
    /// A warning.
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
    /// Colours are used.
    Used,
    /// Colours are not used, and neither is any other escape sequence.
    Unused,
}

/// The columns that stay of a shortened text.
const MIN_SHORTENED: usize = 10;

/// A line of output.
#[derive(Debug, Clone, Default)]
pub struct StyledLine {
    margin: Option<(Tone, &'static str)>,
    spans: Vec<(Tone, String)>,
    /// The span that is shortened first if the line is too long.
    shortened: Option<usize>,
    right: String,
    wrapped: Option<(Tone, String)>,
}

/// The fewest columns in which a text is wrapped beside its head; with fewer, it continues below.
const MIN_WRAPPED: usize = 20;
/// The indentation of a text that continues below its head.
const BELOW: &str = "    ";

impl StyledLine {
    /// Creates an empty line.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a line with ordinary text.
    pub fn from_text(text: &str) -> Self {
        Self::new().plain(text)
    }

    /// Adds text with a tone. Leading and trailing spaces are preserved, because they separate
    /// pieces.
    #[must_use]
    pub fn span(mut self, tone: Tone, text: &str) -> Self {
        let safe = sanitize::text(text).replace(['\n', '\t'], " ");
        self.spans.push((tone, safe));
        self
    }

    /// Adds text that is shortened first if the line is too long, such as a command in front of its
    /// result.
    #[must_use]
    pub fn shortened(mut self, tone: Tone, text: &str) -> Self {
        self.shortened = Some(self.spans.len());
        self.span(tone, text)
    }

    /// Adds ordinary text.
    #[must_use]
    pub fn plain(self, text: &str) -> Self {
        self.span(Tone::Plain, text)
    }

    /// Adds important text.
    #[must_use]
    pub fn strong(self, text: &str) -> Self {
        self.span(Tone::Strong, text)
    }

    /// Adds text of low importance.
    #[must_use]
    pub fn quiet(self, text: &str) -> Self {
        self.span(Tone::Quiet, text)
    }

    /// Adds a text at the left edge, also of continuation lines.
    #[must_use]
    pub fn margin(mut self, tone: Tone, text: &'static str) -> Self {
        self.margin = Some((tone, text));
        self
    }

    /// Indents the whole line by two columns.
    #[must_use]
    pub fn indented(mut self) -> Self {
        self.spans.insert(0, (Tone::Plain, "  ".to_owned()));
        self.shortened = self.shortened.map(|index| index + 1);
        self
    }

    /// Adds a text at the right edge, such as a duration; without a width it follows in parentheses.
    #[must_use]
    pub fn right_aligned(mut self, text: &str) -> Self {
        self.right = sanitize::line(text);
        self
    }

    /// Ends the line with a text that must not be cut: if it does not fit, it continues below.
    #[must_use]
    pub fn wrapped(mut self, tone: Tone, text: &str) -> Self {
        self.wrapped = Some((tone, sanitize::line(text)));
        self
    }

    /// Renders the line, cut and folded to `width` columns if there is a width.
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
        let room = width.map(|width| width.saturating_sub(indent));
        let pieces = match (room, width) {
            (Some(room), _) if room >= MIN_WRAPPED.min(width::columns(text)) => {
                width::wrap(text, room)
            }
            (Some(_), Some(width)) => {
                let room = width.saturating_sub(BELOW.len()).max(1);
                let below = width::wrap(text, room).into_iter();
                let painted =
                    below.map(|piece| format!("\n{BELOW}{}", paint(&piece, *tone, colour)));
                return format!(
                    "{}{}",
                    head.trim_end_matches(' '),
                    painted.collect::<String>()
                );
            }
            (_, _) => vec![text.clone()],
        };
        let painted: Vec<String> = pieces
            .iter()
            .map(|piece| paint(piece, *tone, colour))
            .collect();
        let below = format!("\n{}", " ".repeat(indent));
        format!("{head}{}", painted.join(&below))
    }

    /// Returns a piece, shortened if it is the one that gives way in a line that is too long.
    fn fitted(&self, index: usize, piece: &str, room: Option<usize>) -> String {
        let spans = self.spans.iter();
        let total: usize = spans.map(|(_, piece)| width::columns(piece)).sum();
        match room {
            Some(room) if total > room && self.shortened == Some(index) => {
                let columns = width::columns(piece);
                let left = columns.saturating_sub(total - room);
                width::truncate(piece, left.max(MIN_SHORTENED.min(columns)))
            }
            Some(_) | None => piece.to_owned(),
        }
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
        for (index, (tone, piece)) in self.spans.iter().enumerate() {
            let piece = &self.fitted(index, piece, room);
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

/// Returns text in the colour of a tone. It must be safe for a terminal.
pub fn paint(text: &str, tone: Tone, colour: Colour) -> String {
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
    fn a_result_stays_behind_a_long_command() {
        let line = StyledLine::from_text("  ✗ ")
            .shortened(Tone::Plain, "run cargo test --workspace --all-features")
            .plain(" · exit 101")
            .right_aligned("2m 05s");
        assert_eq!(
            line.render(Colour::Unused, Some(40)),
            "  ✗ run cargo test --… · exit 101 2m 05s"
        );
        assert_eq!(
            line.indented().render(Colour::Unused, Some(40)),
            "    ✗ run cargo test … · exit 101 2m 05s"
        );
    }

    #[test]
    fn wrapped_text_without_room_beside_its_head_continues_below() {
        let line = StyledLine::from_text("a head of twenty-four   ");
        let line = line.wrapped(Tone::Plain, "kept: it is less than 30 days old");
        let shown = line.render(Colour::Unused, Some(40));
        let expected = "a head of twenty-four\n    kept: it is less than 30 days old";
        assert_eq!(shown, expected);
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
