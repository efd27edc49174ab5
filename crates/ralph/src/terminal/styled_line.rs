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

/// What happens to a line that is wider than the terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Overflow {
    /// It continues below, between words.
    #[default]
    Continued,
    /// Its end is left out.
    Cut,
}

/// A line of output. If it is too long, it continues below, unless a part of it is shortened or its end
/// is cut.
#[derive(Debug, Clone, Default)]
pub struct StyledLine {
    margin: Option<(Tone, &'static str)>,
    spans: Vec<(Tone, String)>,
    /// The span that is shortened first if the line is too long.
    shortened: Option<usize>,
    right: String,
    wrapped: Option<(Tone, String)>,
    overflow: Overflow,
}

/// The fewest columns in which a text is wrapped beside its head; with fewer, it continues below.
const MIN_WRAPPED: usize = 20;
/// The indentation of a text that continues below its head.
const BELOW: &str = "    ";
/// The additional indentation of the continuation of a line.
const CONTINUED: usize = 2;

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

    /// Leaves the end out if the line is too long, such as in a row of a table.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.overflow = Overflow::Cut;
        self
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
        let wrapped = self.wrapped.as_ref();
        let Some((tone, text)) = wrapped.filter(|(_, text)| !text.is_empty()) else {
            return match width {
                Some(width) if self.is_continued(width) => self.render_continued(colour, width),
                Some(_) | None => self.render_left(colour, width),
            };
        };
        let head = self.render_left(colour, width);
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

    /// Returns whether the line is too long for the width and continues below.
    fn is_continued(&self, width: usize) -> bool {
        let spans = self.spans.iter();
        let total: usize = spans.map(|(_, piece)| width::columns(piece)).sum();
        self.overflow == Overflow::Continued
            && self.shortened.is_none()
            && total + self.reserved_columns() > width
    }

    /// Renders the line on several lines, broken between words; the continuation is indented.
    fn render_continued(&self, colour: Colour, width: usize) -> String {
        let right = (!self.right.is_empty()).then(|| (Tone::Quiet, format!(" ({})", self.right)));
        let spans: Vec<&(Tone, String)> = self.spans.iter().chain(&right).collect();
        let text: String = spans.iter().map(|(_, piece)| piece.as_str()).collect();
        let spaces = text.len() - text.trim_start_matches(' ').len();
        let indent = (spaces + CONTINUED).min(width / 2);
        let mut breaks = width::line_breaks(&text, width, width - indent).into_iter();
        let mut next_break = breaks.next();
        let (mut rendered, mut position) = (String::new(), 0);
        for (tone, piece) in spans {
            let mut part = String::new();
            for c in piece.chars() {
                if next_break == Some(position) {
                    if part.is_empty() {
                        rendered.truncate(rendered.trim_end_matches(' ').len());
                    }
                    rendered.push_str(&paint(part.trim_end_matches(' '), *tone, colour));
                    rendered.push('\n');
                    rendered.push_str(&" ".repeat(indent));
                    part.clear();
                    next_break = breaks.next();
                }
                position += c.len_utf8();
                part.push(c);
            }
            rendered.push_str(&paint(&part, *tone, colour));
        }
        rendered
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

    /// Returns the columns of the text at the right edge.
    fn reserved_columns(&self) -> usize {
        if self.right.is_empty() {
            0
        } else {
            width::columns(&self.right) + 1
        }
    }

    fn render_left(&self, colour: Colour, width: Option<usize>) -> String {
        let room = width.map(|width| width.saturating_sub(self.reserved_columns()));
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
        assert_eq!(line.render(Colour::Unused, Some(12)), "abcd efgh\n  (12s)");
        let line = line.cut();
        assert_eq!(line.render(Colour::Unused, Some(12)), "abcd ef… 12s");
        assert_eq!(
            line.render(Colour::Used, Some(9)),
            "ab\u{1b}[31mcd…\u{1b}[0m \u{1b}[2m12s\u{1b}[0m"
        );
    }

    #[test]
    fn a_long_line_continues_below_unless_it_is_cut() {
        let line = StyledLine::from_text("  pull request ")
            .strong("#1 of a long title")
            .span(Tone::Good, " (merged)");
        assert_eq!(
            line.render(Colour::Unused, Some(24)),
            "  pull request #1 of a\n    long title (merged)"
        );
        assert_eq!(
            line.render(Colour::Used, Some(24)),
            "  pull request \u{1b}[1m#1 of a\u{1b}[0m\n    \u{1b}[1mlong title\u{1b}[0m\u{1b}[32m (merged)\u{1b}[0m"
        );
        let cut = line.clone().cut().render(Colour::Unused, Some(24));
        assert_eq!(cut, "  pull request #1 of a …");
        let wide = "  pull request #1 of a long title (merged)";
        assert_eq!(line.render(Colour::Unused, Some(42)), wide);
        let without_value = StyledLine::from_text("  name     ").wrapped(Tone::Plain, "");
        let with_text = without_value.span(Tone::Warn, "read it before you confirm");
        assert_eq!(
            with_text.render(Colour::Unused, Some(24)),
            "  name     read it\n    before you confirm"
        );
        let address = StyledLine::from_text("at file:///a/very/long/path");
        assert_eq!(
            address.render(Colour::Unused, Some(12)),
            "at\n  file:///a/\n  very/long/\n  path"
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
