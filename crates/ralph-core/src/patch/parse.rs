//! Reads a unified diff the way models write it.
//!
//! Prose and code fences around the diff are skipped. The counts of a `@@` line are hints, since
//! models miscount: they decide only where the text itself leaves two readings.

use super::error::{PatchError, Refusal, quote};
use super::header::{Remark, both_name, is_hunk_header, name, names};
use super::hunk::{Hunk, Line, Side};
use super::mode::FileMode;
use super::rows;

/// What becomes of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Changed,
    Created,
    Deleted,
}

/// A patch of one file.
#[derive(Debug)]
pub(super) struct Diff<'a> {
    pub(super) fate: Fate,
    /// The mode that the file gets; none if it keeps its own or is a plain new one.
    pub(super) mode: Option<FileMode>,
    pub(super) hunks: Vec<Hunk<'a>>,
    pub(super) notes: Vec<String>,
}

impl Diff<'_> {
    /// Tells whether no hunk quotes a line of the file.
    pub(super) fn adds_only(&self) -> bool {
        self.hunks.iter().all(|hunk| hunk.old().next().is_none())
    }
}

/// Parses a patch that must be for `path`.
pub(super) fn parse<'a>(path: &'a str, diff_text: &'a str) -> Result<Diff<'a>, PatchError> {
    let rows = rows::split(diff_text);
    let windows = rows.iter().map(|row| row.ending == "\r\n").collect();
    let lines = rows
        .iter()
        .map(|row| row.text.strip_suffix('\r').unwrap_or(row.text))
        .collect();
    let mut parser = Parser {
        path,
        lines,
        windows,
        diff: Diff {
            fate: Fate::Changed,
            mode: None,
            hunks: Vec::new(),
            notes: Vec::new(),
        },
        open: None,
        fence: None,
        in_file: false,
        strays: Strays::Refused,
    };
    let mut at = 0;
    while at < parser.lines.len() {
        at += parser.take(at)?;
    }
    parser.finish()
}

/// What a line with `+` or `-` outside of hunks is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strays {
    /// Perhaps the rest of a hunk that something cut in two.
    Refused,
    /// Prose: the hunk before was as long as stated and its code fence is closed.
    Prose,
}

struct Parser<'a> {
    path: &'a str,
    lines: Vec<&'a str>,
    windows: Vec<bool>,
    diff: Diff<'a>,
    open: Option<Hunk<'a>>,
    /// The length of the run of backticks that opened a code fence.
    fence: Option<usize>,
    /// A header or hunk was seen.
    in_file: bool,
    strays: Strays,
}

impl<'a> Parser<'a> {
    /// Takes the lines at `at` that belong together; returns how many.
    fn take(&mut self, at: usize) -> Result<usize, PatchError> {
        let line = self.lines[at];
        if is_hunk_header(line) {
            self.close()?;
            self.in_file = true;
            self.strays = Strays::Refused;
            self.open = Some(Hunk::starting(line, self.windows[at]));
            return Ok(1);
        }
        let header = self.header_length(at);
        if header > 0 {
            self.close()?;
            for line in at..at + header {
                self.named(self.lines[line])?;
            }
            return Ok(header);
        }
        if self.open.is_some() && self.body(at)? {
            return Ok(1);
        }
        self.outside(at)?;
        Ok(1)
    }

    fn starts(&self, at: usize, start: &str) -> bool {
        self.lines.get(at).is_some_and(|line| {
            line.starts_with(start) && (start == "@@" || !name(line).is_empty())
        })
    }

    /// Returns how many lines at `at` name the file: both, or one that an `@@` line follows.
    ///
    /// In a hunk `--- x` may also remove the line `-- x`; there only both names before an `@@`
    /// line are a header, and not if the hunk needs exactly these two lines to be full.
    fn header_length(&self, at: usize) -> usize {
        let pair = self.starts(at, "--- ") && self.starts(at + 1, "+++ ");
        let Some(hunk) = &self.open else {
            let single = self.starts(at, "--- ") || self.starts(at, "+++ ");
            return match (pair, single && self.starts(at + 1, "@@")) {
                (true, _) => 2,
                (false, true) => 1,
                (false, false) => 0,
            };
        };
        if pair && self.starts(at + 2, "@@") && !hunk.lacks(1) {
            2
        } else {
            0
        }
    }

    fn named(&mut self, line: &str) -> Result<(), PatchError> {
        let name = name(line);
        if name == "/dev/null" {
            self.in_file = true;
            return self.meets(if line.starts_with('-') {
                Fate::Created
            } else {
                Fate::Deleted
            });
        }
        if names(name, self.path) {
            self.in_file = true;
            return Ok(());
        }
        Err(self.other(name))
    }

    fn other(&self, named: &str) -> PatchError {
        let (path, named) = (self.path.to_owned(), quote(named));
        if self.diff.hunks.is_empty() {
            PatchError::OtherFile { path, named }
        } else {
            PatchError::SeveralFiles { path, named }
        }
    }

    /// Returns why the two names of git's header are refused: with a rename they differ rightly.
    fn other_pair(&self, at: usize, pair: &str) -> PatchError {
        let mut remarks = self.lines[at + 1..]
            .iter()
            .take_while(|line| !line.starts_with("diff --git ") && !is_hunk_header(line));
        if remarks.any(|line| Remark::parse(line) == Some(Remark::Renames)) {
            PatchError::Renames
        } else {
            self.other(pair)
        }
    }

    fn meets(&mut self, fate: Fate) -> Result<(), PatchError> {
        if self.diff.fate != Fate::Changed && self.diff.fate != fate {
            return Err(PatchError::CreatesAndDeletes(self.path.to_owned()));
        }
        self.diff.fate = fate;
        Ok(())
    }

    /// Takes a line into the open hunk; otherwise ends the hunk and returns `false`.
    fn body(&mut self, at: usize) -> Result<bool, PatchError> {
        let line = self.lines[at];
        let closes_fence = self.closes_fence(line);
        let Some(hunk) = self.open.as_mut() else {
            return Ok(false);
        };
        let mut chars = line.chars();
        let side = match chars.next() {
            None if hunk.is_full() => None,
            None | Some(' ') => Some(Side::Context),
            Some('-') => Some(Side::Removed),
            Some('+') => Some(Side::Added),
            Some('\\') if line.starts_with("\\ ") => {
                if let Some(last) = hunk.lines.last_mut() {
                    last.ends_file = true;
                }
                return Ok(true);
            }
            Some(_) => None,
        };
        let Some(side) = side else {
            self.strays = if closes_fence && hunk.is_full() {
                Strays::Prose
            } else {
                Strays::Refused
            };
            self.close()?;
            return Ok(false);
        };
        // A name that slipped below its `@@` line is no text of the file.
        if line.starts_with("+++ ") && names(name(line), self.path) {
            let number = self.diff.hunks.len() + 1;
            return Err(Refusal::Stray { line: quote(line) }.of_hunk(number));
        }
        hunk.push(Line {
            side,
            text: chars.as_str(),
            ends_file: false,
            bare: line.is_empty(),
            windows: self.windows[at],
        });
        Ok(true)
    }

    fn closes_fence(&self, line: &str) -> bool {
        let run = backticks(line);
        self.fence.is_some_and(|open| run >= open) && line[run..].trim().is_empty()
    }

    fn outside(&mut self, at: usize) -> Result<(), PatchError> {
        let line = self.lines[at];
        if self.closes_fence(line) {
            self.fence = None;
        } else if self.fence.is_none() && backticks(line) >= 3 {
            self.fence = Some(backticks(line));
        }
        if line.starts_with("@@@") {
            return Err(PatchError::NotUnified(quote(line)));
        }
        match Remark::parse(line) {
            Some(Remark::Git(pair)) if both_name(pair, self.path) => self.in_file = true,
            Some(Remark::Git(pair)) => return Err(self.other_pair(at, pair)),
            Some(Remark::Creates(mode)) => {
                let mode = FileMode::parse(mode)?;
                self.diff.mode = Some(mode).filter(|mode| *mode == FileMode::Executable);
                self.meets(Fate::Created)?;
            }
            Some(Remark::Deletes(mode)) => {
                FileMode::parse(mode)?;
                self.meets(Fate::Deleted)?;
            }
            Some(Remark::OldMode(mode)) => {
                FileMode::parse(mode)?;
            }
            Some(Remark::NewMode(mode)) => self.diff.mode = Some(FileMode::parse(mode)?),
            Some(Remark::Renames) => return Err(PatchError::Renames),
            Some(Remark::Binary) => return Err(PatchError::Binary),
            Some(Remark::Foreign) => return Err(PatchError::NotUnified(quote(line))),
            None if self.in_file
                && self.strays == Strays::Refused
                && line.starts_with(['+', '-']) =>
            {
                return Err(match self.diff.hunks.len() {
                    0 => PatchError::NoHunks,
                    number => Refusal::Stray { line: quote(line) }.of_hunk(number),
                });
            }
            None => {}
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), PatchError> {
        let Some(mut hunk) = self.open.take() else {
            return Ok(());
        };
        hunk.settle_blank_end();
        let number = self.diff.hunks.len() + 1;
        hunk.check().map_err(|reason| reason.of_hunk(number))?;
        if let Some(stated) = hunk.stated.filter(|_| !hunk.is_full()) {
            let (old, new) = hunk.counts;
            self.diff.notes.push(format!(
                "hunk {number}: states {} old and {} new lines, has {old} and {new}",
                stated.old_count, stated.new_count
            ));
        }
        self.diff.hunks.push(hunk);
        Ok(())
    }

    fn finish(mut self) -> Result<Diff<'a>, PatchError> {
        let runs_to_the_end = self.open.is_some();
        self.close()?;
        // A reply that was cut short must not remove lines whose replacement is lost. A new file has
        // nothing to lose, and its length is what models miscount most; a deletion is compared with
        // the whole file anyway.
        if let Some(hunk) = self.diff.hunks.last()
            && let Some(last) = hunk.lines.last()
            && runs_to_the_end
            && self.diff.fate == Fate::Changed
            && hunk.is_short()
            && last.side != Side::Context
            && hunk.old().next().is_some()
        {
            let line = quote(last.text);
            return Err(Refusal::CutOff { line }.of_hunk(self.diff.hunks.len()));
        }
        Ok(self.diff)
    }
}

fn backticks(line: &str) -> usize {
    line.bytes().take_while(|byte| *byte == b'`').count()
}
