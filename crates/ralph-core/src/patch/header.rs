//! Parses header lines of a diff: names, `@@` lines and git's extended headers.

use crate::parse_value;
use crate::path::WorkspacePath;

/// A header line outside hunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiffHeaderLine<'a> {
    /// `diff --git`, with the rest of the line.
    Git(&'a str),
    /// The file is new and has this mode.
    Creates(&'a str),
    /// The file is deleted; it had this mode.
    Deletes(&'a str),
    /// The mode before the change, or the unchanged mode.
    OldMode(&'a str),
    /// The mode after the change.
    NewMode(&'a str),
    /// A rename or copy.
    Renames,
    /// Binary content.
    Binary,
    /// A line of a patch format that is not a unified diff.
    Foreign,
}

impl<'a> DiffHeaderLine<'a> {
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        const STARTS: [(&str, DiffHeaderLine<'static>); 9] = [
            ("rename from ", DiffHeaderLine::Renames),
            ("rename to ", DiffHeaderLine::Renames),
            ("copy from ", DiffHeaderLine::Renames),
            ("copy to ", DiffHeaderLine::Renames),
            ("GIT binary patch", DiffHeaderLine::Binary),
            ("*** Begin Patch", DiffHeaderLine::Foreign),
            ("*** Add File:", DiffHeaderLine::Foreign),
            ("*** Update File:", DiffHeaderLine::Foreign),
            ("*** Delete File:", DiffHeaderLine::Foreign),
        ];
        if let Some(names) = line.strip_prefix("diff --git ") {
            return Some(Self::Git(names));
        }
        if let Some(header) = Self::parse_mode(line) {
            return Some(header);
        }
        if line.starts_with("Binary files ") && line.ends_with(" differ") {
            return Some(Self::Binary);
        }
        STARTS
            .iter()
            .find(|(start, _)| line.starts_with(start))
            .map(|(_, header)| *header)
    }

    fn parse_mode(line: &'a str) -> Option<Self> {
        if let Some(mode) = line.strip_prefix("new file mode ") {
            return Some(Self::Creates(mode));
        }
        if let Some(mode) = line.strip_prefix("deleted file mode ") {
            return Some(Self::Deletes(mode));
        }
        if let Some(mode) = line.strip_prefix("new mode ") {
            return Some(Self::NewMode(mode));
        }
        if let Some(mode) = line.strip_prefix("old mode ") {
            return Some(Self::OldMode(mode));
        }
        // `index 1234567..89abcde 100644`
        let (blobs, mode) = line.strip_prefix("index ")?.split_once(' ')?;
        blobs.contains("..").then_some(Self::OldMode(mode))
    }
}

/// The numbers of a `@@` line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HunkRanges {
    /// The first old line, from 1.
    pub(super) old_start: usize,
    pub(super) old_count: usize,
    /// The first new line, from 1.
    pub(super) new_start: usize,
    pub(super) new_count: usize,
}

impl HunkRanges {
    /// Parses `@@ -3,4 +3,5 @@ …`; `None` without both ranges.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix("@@")?.split_whitespace();
        let (old_start, old_count) = parse_range(words.next()?.strip_prefix('-')?)?;
        let (new_start, new_count) = parse_range(words.next()?.strip_prefix('+')?)?;
        Some(Self {
            old_start,
            old_count,
            new_start,
            new_count,
        })
    }
}

fn parse_range(text: &str) -> Option<(usize, usize)> {
    let text = text.trim_end_matches('@');
    match text.split_once(',') {
        Some((start, count)) => Some((parse_value(start)?, parse_value(count)?)),
        None => Some((parse_value(text)?, 1)),
    }
}

/// Returns the section of a `@@` line: the text besides its ranges.
pub(super) fn section(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("@@")?.trim_start();
    let has_ranges = rest.starts_with(['-', '+', '@']);
    let section = match rest.split_once("@@") {
        Some((_, section)) if has_ranges => section,
        // `@@ fn main() @@` and `@@ fn main()` have no ranges.
        Some((section, _)) => section,
        None if has_ranges => return None,
        None => rest,
    };
    let section = section.trim();
    section.contains(char::is_alphanumeric).then_some(section)
}

/// Returns whether a line starts a hunk. Code such as Ruby's `@@count` does not.
pub(super) fn is_hunk_header(line: &str) -> bool {
    line.strip_prefix("@@")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '-']))
}

/// Returns the name after `---` or `+++`, without a time stamp or quotes.
pub(super) fn file_name(line: &str) -> &str {
    let name = line.get(4..).unwrap_or_default();
    let name = name.split('\t').next().unwrap_or_default().trim();
    name.strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'))
        .unwrap_or(name)
}

/// Returns whether a header's name is the path, with or without a prefix such as `a/`.
///
/// A name that leads outside the repository never matches.
pub(super) fn names_path(name: &str, path: &str) -> bool {
    let Ok(path) = WorkspacePath::parse(path) else {
        return false;
    };
    let bare = match name.split_once('/') {
        Some(("a" | "b" | "c" | "i" | "o" | "w", bare)) => bare,
        Some(_) | None => name,
    };
    [name, bare]
        .into_iter()
        .any(|name| WorkspacePath::parse(name).is_ok_and(|name| name == path))
}

/// Returns whether both names of a `diff --git` line are the path.
pub(super) fn both_name_path(pair: &str, path: &str) -> bool {
    pair.match_indices(' ').any(|(at, _)| {
        [&pair[..at], &pair[at + 1..]]
            .into_iter()
            .all(|side| names_path(side.trim_matches('"'), path))
    })
}
