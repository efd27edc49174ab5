//! Parses unified diffs as models write them.
//!
//! Prose and code fences around the diff are skipped. Models miscount, so the counts of a `@@` line
//! are only hints: they decide only if the text itself is ambiguous.

use super::error::{HunkError, PatchError, quote};
use super::file_lines;
use super::header::{DiffHeaderLine, both_name_path, file_name, is_hunk_header, names_path};
use super::hunk::{Hunk, HunkLine, HunkLineKind};
use super::mode::FileMode;

/// The effect of a patch on its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PatchEffect {
    Changed,
    Created,
    Deleted,
}

/// A parsed patch of one file.
#[derive(Debug)]
pub(super) struct ParsedPatch<'a> {
    pub(super) effect: PatchEffect,
    /// The new mode; `None` if it does not change or the file is new with the default mode.
    pub(super) mode: Option<FileMode>,
    pub(super) hunks: Vec<Hunk<'a>>,
    pub(super) notes: Vec<String>,
}

impl ParsedPatch<'_> {
    /// Returns whether no hunk quotes a line of the file.
    pub(super) fn adds_only(&self) -> bool {
        self.hunks
            .iter()
            .all(|hunk| hunk.old_lines().next().is_none())
    }
}

/// Parses a patch that must be for `path`.
pub(super) fn parse<'a>(path: &'a str, diff_text: &'a str) -> Result<ParsedPatch<'a>, PatchError> {
    let rows = file_lines::split(diff_text);
    let windows = rows.iter().map(|row| row.ending == "\r\n").collect();
    let lines = rows
        .iter()
        .map(|row| row.text.strip_suffix('\r').unwrap_or(row.text))
        .collect();
    let mut parser = PatchParser {
        path,
        lines,
        crlf: windows,
        diff: ParsedPatch {
            effect: PatchEffect::Changed,
            mode: None,
            hunks: Vec::new(),
            notes: Vec::new(),
        },
        open: None,
        fence: None,
        in_file: false,
        stray_lines: StrayLinePolicy::Refused,
    };
    let mut at = 0;
    while at < parser.lines.len() {
        at += parser.parse_at(at)?;
    }
    parser.finish()
}

/// How to treat a line with `+` or `-` outside hunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StrayLinePolicy {
    /// It may be the rest of a hunk that was split.
    Refused,
    /// It is prose: the previous hunk was complete and its code fence is closed.
    Prose,
}

struct PatchParser<'a> {
    path: &'a str,
    lines: Vec<&'a str>,
    crlf: Vec<bool>,
    diff: ParsedPatch<'a>,
    open: Option<Hunk<'a>>,
    /// The number of backticks that opened a code fence.
    fence: Option<usize>,
    /// Whether a header or hunk was seen.
    in_file: bool,
    stray_lines: StrayLinePolicy,
}

impl<'a> PatchParser<'a> {
    /// Parses the lines at `at` that belong together; returns their number.
    fn parse_at(&mut self, at: usize) -> Result<usize, PatchError> {
        let line = self.lines[at];
        if is_hunk_header(line) {
            self.close_hunk()?;
            self.in_file = true;
            self.stray_lines = StrayLinePolicy::Refused;
            self.open = Some(Hunk::from_header(line, self.crlf[at]));
            return Ok(1);
        }
        let header = self.header_length(at);
        if header > 0 {
            self.close_hunk()?;
            for line in at..at + header {
                self.parse_file_name(self.lines[line])?;
            }
            return Ok(header);
        }
        if self.open.is_some() && self.parse_hunk_line(at)? {
            return Ok(1);
        }
        self.parse_outside_hunk(at)?;
        Ok(1)
    }

    fn line_starts_with(&self, at: usize, start: &str) -> bool {
        self.lines.get(at).is_some_and(|line| {
            line.starts_with(start) && (start == "@@" || !file_name(line).is_empty())
        })
    }

    /// Returns how many lines at `at` name the file: both, or one followed by an `@@` line.
    ///
    /// In a hunk `--- x` may also remove the line `-- x`; there only both names before an `@@` line
    /// are a header, and not if the hunk needs exactly these two lines to be complete.
    fn header_length(&self, at: usize) -> usize {
        let pair = self.line_starts_with(at, "--- ") && self.line_starts_with(at + 1, "+++ ");
        let Some(hunk) = &self.open else {
            let single = self.line_starts_with(at, "--- ") || self.line_starts_with(at, "+++ ");
            return match (pair, single && self.line_starts_with(at + 1, "@@")) {
                (true, _) => 2,
                (false, true) => 1,
                (false, false) => 0,
            };
        };
        if pair && self.line_starts_with(at + 2, "@@") && !hunk.lacks_context_lines(1) {
            2
        } else {
            0
        }
    }

    fn parse_file_name(&mut self, line: &str) -> Result<(), PatchError> {
        let name = file_name(line);
        if name == "/dev/null" {
            self.in_file = true;
            return self.set_effect(if line.starts_with('-') {
                PatchEffect::Created
            } else {
                PatchEffect::Deleted
            });
        }
        if names_path(name, self.path) {
            self.in_file = true;
            return Ok(());
        }
        Err(self.other_file_error(name))
    }

    fn other_file_error(&self, named: &str) -> PatchError {
        let (path, named) = (self.path.to_owned(), quote(named));
        if self.diff.hunks.is_empty() {
            PatchError::OtherFile { path, named }
        } else {
            PatchError::SeveralFiles { path, named }
        }
    }

    /// Returns why the names of git's header are rejected; in a rename they differ legitimately.
    fn other_pair_error(&self, at: usize, pair: &str) -> PatchError {
        let mut header_lines = self.lines[at + 1..]
            .iter()
            .take_while(|line| !line.starts_with("diff --git ") && !is_hunk_header(line));
        if header_lines.any(|line| DiffHeaderLine::parse(line) == Some(DiffHeaderLine::Renames)) {
            PatchError::Renames
        } else {
            self.other_file_error(pair)
        }
    }

    fn set_effect(&mut self, effect: PatchEffect) -> Result<(), PatchError> {
        if self.diff.effect != PatchEffect::Changed && self.diff.effect != effect {
            return Err(PatchError::CreatesAndDeletes(self.path.to_owned()));
        }
        self.diff.effect = effect;
        Ok(())
    }

    /// Adds a line to the open hunk; otherwise ends the hunk and returns `false`.
    fn parse_hunk_line(&mut self, at: usize) -> Result<bool, PatchError> {
        let line = self.lines[at];
        let closes_fence = self.closes_fence(line);
        let Some(hunk) = self.open.as_mut() else {
            return Ok(false);
        };
        let mut chars = line.chars();
        let side = match chars.next() {
            None if hunk.is_full() => None,
            None | Some(' ') => Some(HunkLineKind::Context),
            Some('-') => Some(HunkLineKind::Removed),
            Some('+') => Some(HunkLineKind::Added),
            Some('\\') if line.starts_with("\\ ") => {
                if let Some(last) = hunk.lines.last_mut() {
                    last.ends_file = true;
                }
                return Ok(true);
            }
            Some(_) => None,
        };
        let Some(side) = side else {
            self.stray_lines = if closes_fence && hunk.is_full() {
                StrayLinePolicy::Prose
            } else {
                StrayLinePolicy::Refused
            };
            self.close_hunk()?;
            return Ok(false);
        };
        // A file name below its `@@` line is not text of the file.
        if line.starts_with("+++ ") && names_path(file_name(line), self.path) {
            let number = self.diff.hunks.len() + 1;
            return Err(HunkError::Stray { line: quote(line) }.for_hunk(number));
        }
        hunk.push(HunkLine {
            kind: side,
            text: chars.as_str(),
            ends_file: false,
            bare: line.is_empty(),
            crlf: self.crlf[at],
        });
        Ok(true)
    }

    fn closes_fence(&self, line: &str) -> bool {
        let run = backticks(line);
        self.fence.is_some_and(|open| run >= open) && line[run..].trim().is_empty()
    }

    fn parse_outside_hunk(&mut self, at: usize) -> Result<(), PatchError> {
        let line = self.lines[at];
        if self.closes_fence(line) {
            self.fence = None;
        } else if self.fence.is_none() && backticks(line) >= 3 {
            self.fence = Some(backticks(line));
        }
        if line.starts_with("@@@") {
            return Err(PatchError::NotUnified(quote(line)));
        }
        match DiffHeaderLine::parse(line) {
            Some(DiffHeaderLine::Git(pair)) if both_name_path(pair, self.path) => {
                self.in_file = true;
            }
            Some(DiffHeaderLine::Git(pair)) => return Err(self.other_pair_error(at, pair)),
            Some(DiffHeaderLine::Creates(mode)) => {
                let mode = FileMode::parse(mode)?;
                self.diff.mode = Some(mode).filter(|mode| *mode == FileMode::Executable);
                self.set_effect(PatchEffect::Created)?;
            }
            Some(DiffHeaderLine::Deletes(mode)) => {
                FileMode::parse(mode)?;
                self.set_effect(PatchEffect::Deleted)?;
            }
            Some(DiffHeaderLine::OldMode(mode)) => {
                FileMode::parse(mode)?;
            }
            Some(DiffHeaderLine::NewMode(mode)) => self.diff.mode = Some(FileMode::parse(mode)?),
            Some(DiffHeaderLine::Renames) => return Err(PatchError::Renames),
            Some(DiffHeaderLine::Binary) => return Err(PatchError::Binary),
            Some(DiffHeaderLine::Foreign) => return Err(PatchError::NotUnified(quote(line))),
            None if self.in_file
                && self.stray_lines == StrayLinePolicy::Refused
                && line.starts_with(['+', '-']) =>
            {
                return Err(match self.diff.hunks.len() {
                    0 => PatchError::NoHunks,
                    number => HunkError::Stray { line: quote(line) }.for_hunk(number),
                });
            }
            None => {}
        }
        Ok(())
    }

    fn close_hunk(&mut self) -> Result<(), PatchError> {
        let Some(mut hunk) = self.open.take() else {
            return Ok(());
        };
        hunk.resolve_trailing_blanks();
        let number = self.diff.hunks.len() + 1;
        hunk.check().map_err(|reason| reason.for_hunk(number))?;
        if let Some(stated) = hunk.ranges.filter(|_| !hunk.is_full()) {
            let (old, new) = hunk.counts;
            self.diff.notes.push(format!(
                "hunk {number}: states {} old and {} new lines, has {old} and {new}",
                stated.old_count, stated.new_count
            ));
        }
        self.diff.hunks.push(hunk);
        Ok(())
    }

    fn finish(mut self) -> Result<ParsedPatch<'a>, PatchError> {
        let is_last_hunk_open = self.open.is_some();
        self.close_hunk()?;
        // A truncated reply must not remove lines without their replacement. A new file has
        // nothing to lose, and models miscount its length most often; a deletion is compared with
        // the whole file anyway.
        if let Some(hunk) = self.diff.hunks.last()
            && let Some(last) = hunk.lines.last()
            && is_last_hunk_open
            && self.diff.effect == PatchEffect::Changed
            && hunk.is_short()
            && last.kind != HunkLineKind::Context
            && hunk.old_lines().next().is_some()
        {
            let line = quote(last.text);
            return Err(HunkError::CutOff { line }.for_hunk(self.diff.hunks.len()));
        }
        Ok(self.diff)
    }
}

fn backticks(line: &str) -> usize {
    line.bytes().take_while(|byte| *byte == b'`').count()
}
