//! One hunk: its lines and its `@@` line.

use super::error::{HunkError, quote};
use super::header::{HunkRanges, section};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HunkLineKind {
    Context,
    Removed,
    Added,
}

/// One line of a hunk, without its first character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HunkLine<'a> {
    pub(super) kind: HunkLineKind,
    pub(super) text: &'a str,
    /// Whether the marker for a missing newline follows.
    pub(super) ends_file: bool,
    /// An empty line that lacks even the space of a context line.
    pub(super) bare: bool,
    /// Whether it ends with `\r\n` in the patch.
    pub(super) crlf: bool,
}

impl HunkLine<'_> {
    const BARE: Self = Self {
        kind: HunkLineKind::Context,
        text: "",
        ends_file: false,
        bare: true,
        crlf: false,
    };
}

#[derive(Debug)]
pub(super) struct Hunk<'a> {
    pub(super) ranges: Option<HunkRanges>,
    /// The section in its `@@` line.
    pub(super) section: Option<&'a str>,
    pub(super) lines: Vec<HunkLine<'a>>,
    /// The number of old and new lines.
    pub(super) counts: (usize, usize),
    crlf: bool,
}

impl<'a> Hunk<'a> {
    pub(super) fn from_header(line: &'a str, windows: bool) -> Self {
        Self {
            ranges: HunkRanges::parse(line),
            section: section(line),
            lines: Vec::new(),
            counts: (0, 0),
            crlf: windows,
        }
    }

    pub(super) fn push(&mut self, line: HunkLine<'a>) {
        self.counts.0 += usize::from(line.kind != HunkLineKind::Added);
        self.counts.1 += usize::from(line.kind != HunkLineKind::Removed);
        self.lines.push(line);
    }

    /// Returns the lines before the change.
    pub(super) fn old_lines(&self) -> impl Iterator<Item = &HunkLine<'a>> {
        self.lines
            .iter()
            .filter(|line| line.kind != HunkLineKind::Added)
    }

    /// Returns the lines after the change.
    pub(super) fn new_lines(&self) -> impl Iterator<Item = &HunkLine<'a>> {
        self.lines
            .iter()
            .filter(|line| line.kind != HunkLineKind::Removed)
    }

    /// Returns whether the hunk is exactly this many context lines short of its stated counts.
    pub(super) fn lacks_context_lines(&self, lines: usize) -> bool {
        self.ranges.is_some_and(|stated| {
            (self.counts.0 + lines, self.counts.1 + lines) == (stated.old_count, stated.new_count)
        })
    }

    /// Returns whether the hunk is exactly one removed line short of its stated counts.
    pub(super) fn lacks_removed_line(&self) -> bool {
        self.ranges.is_some_and(|stated| {
            (self.counts.0 + 1, self.counts.1) == (stated.old_count, stated.new_count)
        })
    }

    /// Returns whether the lines of the hunk end with `\r\n` although its header does not, as in
    /// diffs that tools write for such files.
    pub(super) fn adds_crlf_lines(&self) -> bool {
        !self.crlf && self.lines.iter().all(|line| line.crlf)
    }

    pub(super) fn is_full(&self) -> bool {
        self.lacks_context_lines(0)
    }

    pub(super) fn is_short(&self) -> bool {
        self.ranges.is_some_and(|stated| {
            self.counts.0 < stated.old_count || self.counts.1 < stated.new_count
        })
    }

    /// Decides whether empty lines at the end are context or separate the hunk from the next text.
    /// They count as context only if that matches the stated counts exactly.
    pub(super) fn resolve_trailing_blanks(&mut self) {
        let bare = self.lines.iter().rev().take_while(|line| line.bare).count();
        self.lines.truncate(self.lines.len() - bare);
        self.counts = (self.counts.0 - bare, self.counts.1 - bare);
        if let Some(keep) = (1..=bare).find(|keep| self.lacks_context_lines(*keep)) {
            for _ in 0..keep {
                self.push(HunkLine::BARE);
            }
        }
    }

    pub(super) fn check(&self) -> Result<(), HunkError> {
        let same = self
            .old_lines()
            .map(|line| (line.text, line.ends_file))
            .eq(self.new_lines().map(|line| (line.text, line.ends_file)));
        if same {
            return Err(HunkError::ChangesNothing);
        }
        let early_old = self.old_lines().enumerate();
        let early_old = early_old.filter(|(at, _)| at + 1 != self.counts.0);
        let early_new = self.new_lines().enumerate();
        let early_new = early_new.filter(|(at, _)| at + 1 != self.counts.1);
        match early_old.chain(early_new).find(|(_, line)| line.ends_file) {
            Some((_, line)) => Err(HunkError::NotAtEnd {
                line: quote(line.text),
            }),
            None => Ok(()),
        }
    }
}
