//! Applies a patch: parses it, locates every hunk, then changes all or nothing.

use std::borrow::Cow;

use super::error::{HunkError, MAX_FILE_BYTES, MAX_PATCH_BYTES, PatchError, quote};
use super::file_lines::{self, FileLine};
use super::hunk::Hunk;
use super::index::FileLineIndex;
use super::locate::{ExpectedStart, HunkEdit, HunkLocation, locate};
use super::mode::FileMode;
use super::parse::{ParsedPatch, PatchEffect, parse};
use super::whole_file;

/// Maximum number of notes that are listed; the rest is only counted.
const MAX_NOTES: usize = 20;
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The result of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchedFile {
    /// The whole new text; `None` if the file is deleted.
    pub text: Option<String>,
    /// The new mode; `None` if it does not change or the file is new with the default mode.
    pub mode: Option<FileMode>,
    /// Whether a hunk did not match exactly at the position in its `@@` line, or lacked the markers of
    /// empty lines. Line endings are ignored: those of the file are preserved.
    pub fuzzy: bool,
    /// Differences from the file or from a well-formed diff, for the log.
    pub notes: Vec<String>,
}

/// Applies a unified diff to the text of the file at `path`; `original` is `None` if the file does
/// not exist.
///
/// Added lines get the file's most common line ending. A missing newline at the end of the file
/// remains missing, unless the patch has `\ No newline at end of file` on either side.
pub fn apply(
    path: &str,
    original: Option<&str>,
    diff_text: &str,
) -> Result<PatchedFile, PatchError> {
    if diff_text.len() > MAX_PATCH_BYTES {
        return Err(PatchError::TooLarge(diff_text.len()));
    }
    let diff_text = diff_text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(diff_text);
    let diff = parse(path, diff_text)?;
    // Models do not see a byte order mark, so it is ignored unless they quote it.
    let unmarked = original
        .filter(|_| !diff_text.contains(BYTE_ORDER_MARK))
        .and_then(|text| text.strip_prefix(BYTE_ORDER_MARK));
    let mut patched = match (diff.effect, unmarked.or(original)) {
        (PatchEffect::Deleted, original) => whole_file::delete(original, diff)?,
        (PatchEffect::Created, original) => whole_file::create(path, original, diff)?,
        (PatchEffect::Changed, None) => whole_file::create(path, None, diff)?,
        (PatchEffect::Changed, Some("")) if diff.adds_only() && !diff.hunks.is_empty() => {
            whole_file::create(path, None, diff)?
        }
        (PatchEffect::Changed, Some(text)) => apply_hunks(text, diff, diff_text)?,
    };
    if let Some(text) = patched.text.as_mut().filter(|_| unmarked.is_some()) {
        text.insert(0, BYTE_ORDER_MARK);
    }
    let length = patched.text.as_ref().map_or(0, String::len);
    if length > MAX_FILE_BYTES {
        return Err(PatchError::ResultTooLarge(length));
    }
    let more = patched.notes.len().saturating_sub(MAX_NOTES);
    if more > 0 {
        patched.notes.truncate(MAX_NOTES);
        patched.notes.push(format!("and {more} more notes"));
    }
    Ok(patched)
}

/// Returns the mode that a patch sets, regardless of the file.
pub fn patched_mode(path: &str, diff_text: &str) -> Option<FileMode> {
    let Ok(parsed) = parse(path, diff_text) else {
        return None;
    };
    parsed.mode
}

fn apply_hunks(
    original: &str,
    diff: ParsedPatch<'_>,
    diff_text: &str,
) -> Result<PatchedFile, PatchError> {
    if diff.hunks.is_empty() && diff.mode.is_none() {
        return Err(PatchError::NoHunks);
    }
    let rows = file_lines::split(original);
    let ending = file_lines::common_ending(&rows);
    let mut patched = PatchedFile {
        text: None,
        mode: diff.mode,
        fuzzy: false,
        notes: diff.notes,
    };
    if !diff.hunks.is_empty() && (ending == "\r\n") != diff_text.contains("\r\n") {
        let note = "the patch's line endings differ from those of the file, which are kept";
        patched.notes.push(note.into());
    }
    let locations = locate_hunks(&rows, &diff.hunks, &mut patched)?;
    let text = apply_edits(&rows, ending, &diff.hunks, locations)?;
    if text == original && !diff.hunks.is_empty() {
        return Err(PatchError::AlreadyApplied);
    }
    patched.text = Some(text);
    Ok(patched)
}

/// Locates all hunks, or returns the reason for the first failure.
fn locate_hunks<'a>(
    rows: &[FileLine<'_>],
    hunks: &[Hunk<'a>],
    patched: &mut PatchedFile,
) -> Result<Vec<HunkLocation<'a>>, PatchError> {
    let index = FileLineIndex::new(rows);
    let mut locations = Vec::new();
    let mut already = None;
    let mut offset = 0;
    for (number, hunk) in (1..).zip(hunks) {
        // Models write line 0 if they do not know the number.
        let stated = hunk
            .ranges
            .and_then(|stated| stated.old_start.checked_sub(1));
        let expected = stated.map(|stated| ExpectedStart {
            stated,
            offset: stated.saturating_add_signed(offset),
        });
        let location = match locate(&index, hunk, expected) {
            Ok(location) => location,
            Err(HunkError::AlreadyPresent) => {
                already = already.or(Some(number));
                continue;
            }
            Err(reason) => return Err(reason.for_hunk(number)),
        };
        if let Some(stated) = stated {
            offset = location.start.checked_signed_diff(stated).unwrap_or(0);
        }
        if location.difference.is_some() || stated != Some(location.start) {
            let how = location.difference.unwrap_or("by its text");
            let line = location.start + 1;
            let note = format!("hunk {number}: found at line {line} {how}");
            patched.notes.push(note);
            patched.fuzzy = true;
        }
        locations.push(location);
    }
    match already {
        Some(_) if locations.is_empty() => Err(PatchError::AlreadyApplied),
        Some(number) => Err(HunkError::AlreadyPresent.for_hunk(number)),
        None => Ok(locations),
    }
}

/// A line of the result.
struct PatchedLine<'a> {
    text: Cow<'a, str>,
    ending: &'a str,
}

/// Performs all edits in one pass over the file.
fn apply_edits<'a>(
    rows: &[FileLine<'a>],
    ending: &'static str,
    hunks: &[Hunk<'a>],
    locations: Vec<HunkLocation<'a>>,
) -> Result<String, PatchError> {
    let mut result: Vec<PatchedLine<'a>> = Vec::with_capacity(rows.len());
    let keep = |row: &FileLine<'a>| PatchedLine {
        text: Cow::Borrowed(row.text),
        ending: row.ending,
    };
    let mut cursor = 0;
    let mut has_end_marker = false;
    let mut end_marked: Option<(usize, usize)> = None;
    for ((number, hunk), location) in (1..).zip(hunks).zip(locations) {
        has_end_marker |= hunk.lines.iter().any(|line| line.ends_file);
        for edit in location.edits {
            let (HunkEdit::Remove(at) | HunkEdit::Insert { at, .. }) = edit;
            let Some(kept) = rows.get(cursor..at) else {
                let line_number = location.start + 1;
                return Err(HunkError::OutOfOrder { line_number }.for_hunk(number));
            };
            result.extend(kept.iter().map(keep));
            cursor = at;
            match edit {
                HunkEdit::Remove(_) => cursor += 1,
                HunkEdit::Insert {
                    text, ends_file, ..
                } => {
                    if ends_file {
                        end_marked = Some((number, result.len()));
                    }
                    result.push(PatchedLine { text, ending });
                }
            }
        }
    }
    result.extend(rows[cursor..].iter().map(keep));
    if let Some((number, at)) = end_marked {
        if at + 1 != result.len() {
            let line = quote(&result[at].text);
            return Err(HunkError::NotAtEnd { line }.for_hunk(number));
        }
        result[at].ending = "";
    }
    let lacks_newline = rows.last().is_some_and(|row| row.ending.is_empty());
    if let Some(last) = result
        .last_mut()
        .filter(|_| lacks_newline && !has_end_marker)
    {
        last.ending = "";
    }
    Ok(join_lines(&result, ending))
}

/// Joins the lines; only the last one may lack a line ending.
fn join_lines(rows: &[PatchedLine<'_>], ending: &str) -> String {
    let mut text = String::new();
    for (at, row) in rows.iter().enumerate() {
        text.push_str(&row.text);
        let is_open = row.ending.is_empty() && at + 1 < rows.len();
        text.push_str(if is_open { ending } else { row.ending });
    }
    text
}
