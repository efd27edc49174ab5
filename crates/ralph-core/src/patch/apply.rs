//! Puts the parts together: parse, find every place, then change all or nothing.

use std::borrow::Cow;

use super::error::{MAX_FILE_BYTES, MAX_PATCH_BYTES, PatchError, Refusal, quote};
use super::hunk::Hunk;
use super::index::Index;
use super::locate::{Edit, Expected, Place, locate};
use super::mode::FileMode;
use super::parse::{Diff, Fate, parse};
use super::rows::{self, Row};
use super::whole;

/// How many notes are kept before the rest is only counted.
const MAX_NOTES: usize = 20;
const BYTE_ORDER_MARK: char = '\u{feff}';

/// What a patch makes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patched {
    /// The whole new text; `None` if the file is deleted.
    pub text: Option<String>,
    /// The mode that the file gets; none if it keeps its own or is a plain new one.
    pub mode: Option<FileMode>,
    /// Whether any hunk was not found line for line where its `@@` line says. Line endings do not
    /// count: the file's are kept.
    pub fuzzy: bool,
    /// What differed from the file or from a well-formed diff, for the log.
    pub notes: Vec<String>,
}

/// Applies a unified diff to the text of the file at `path`; `original` is `None` if it does not
/// exist.
///
/// Added lines get the line ending that most lines of the file have, and the last line keeps or
/// lacks its newline as before, unless the patch has `\ No newline at end of file` on either side.
pub fn apply(path: &str, original: Option<&str>, diff_text: &str) -> Result<Patched, PatchError> {
    if diff_text.len() > MAX_PATCH_BYTES {
        return Err(PatchError::TooLarge(diff_text.len()));
    }
    let diff_text = diff_text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(diff_text);
    let diff = parse(path, diff_text)?;
    // Models do not see a byte order mark, so it stays out of the comparison unless they quote it.
    let unmarked = original
        .filter(|_| !diff_text.contains(BYTE_ORDER_MARK))
        .and_then(|text| text.strip_prefix(BYTE_ORDER_MARK));
    let mut patched = match (diff.fate, unmarked.or(original)) {
        (Fate::Deleted, original) => whole::delete(original, diff)?,
        (Fate::Created, original) => whole::create(path, original, diff)?,
        (Fate::Changed, None) => whole::create(path, None, diff)?,
        (Fate::Changed, Some("")) if diff.adds_only() && !diff.hunks.is_empty() => {
            whole::create(path, None, diff)?
        }
        (Fate::Changed, Some(text)) => change(text, diff, diff_text)?,
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

/// Returns the mode that a patch gives to its file, whatever the file is like now.
pub fn mode_of(path: &str, diff_text: &str) -> Option<FileMode> {
    parse(path, diff_text).ok()?.mode
}

fn change(original: &str, diff: Diff<'_>, diff_text: &str) -> Result<Patched, PatchError> {
    if diff.hunks.is_empty() && diff.mode.is_none() {
        return Err(PatchError::NoHunks);
    }
    let rows = rows::split(original);
    let ending = rows::common_ending(&rows);
    let mut patched = Patched {
        text: None,
        mode: diff.mode,
        fuzzy: false,
        notes: diff.notes,
    };
    if !diff.hunks.is_empty() && (ending == "\r\n") != diff_text.contains("\r\n") {
        let note = "the patch has other line endings than the file, whose are kept";
        patched.notes.push(note.into());
    }
    let places = find_places(&rows, &diff.hunks, &mut patched)?;
    let text = join(&rows, ending, &diff.hunks, places)?;
    if text == original && !diff.hunks.is_empty() {
        return Err(PatchError::AlreadyApplied);
    }
    patched.text = Some(text);
    Ok(patched)
}

/// Finds the places of all hunks, or says why one has none.
fn find_places<'a>(
    rows: &[Row<'_>],
    hunks: &[Hunk<'a>],
    patched: &mut Patched,
) -> Result<Vec<Place<'a>>, PatchError> {
    let index = Index::new(rows);
    let mut places = Vec::new();
    let mut already = None;
    let mut offset = 0;
    for (number, hunk) in (1..).zip(hunks) {
        // Line 0 is what a model writes that does not know the number.
        let stated = hunk
            .stated
            .and_then(|stated| stated.old_start.checked_sub(1));
        let expected = stated.map(|stated| Expected {
            stated,
            moved: stated.saturating_add_signed(offset),
        });
        let place = match locate(&index, hunk, expected) {
            Ok(place) => place,
            Err(Refusal::AlreadyThere) => {
                already = already.or(Some(number));
                continue;
            }
            Err(reason) => return Err(reason.of_hunk(number)),
        };
        if let Some(stated) = stated {
            offset = place.start.checked_signed_diff(stated).unwrap_or(0);
        }
        if place.difference.is_some() || stated != Some(place.start) {
            let how = place.difference.unwrap_or("by its text");
            let line = place.start + 1;
            let note = format!("hunk {number}: found at line {line} {how}");
            patched.notes.push(note);
            patched.fuzzy = true;
        }
        places.push(place);
    }
    match already {
        Some(_) if places.is_empty() => Err(PatchError::AlreadyApplied),
        Some(number) => Err(Refusal::AlreadyThere.of_hunk(number)),
        None => Ok(places),
    }
}

/// A line of the result.
struct NewRow<'a> {
    text: Cow<'a, str>,
    ending: &'a str,
}

/// Makes all edits in one pass over the file.
fn join<'a>(
    rows: &[Row<'a>],
    ending: &'static str,
    hunks: &[Hunk<'a>],
    places: Vec<Place<'a>>,
) -> Result<String, PatchError> {
    let mut result: Vec<NewRow<'a>> = Vec::with_capacity(rows.len());
    let keep = |row: &Row<'a>| NewRow {
        text: Cow::Borrowed(row.text),
        ending: row.ending,
    };
    let mut cursor = 0;
    let mut says_end = false;
    let mut end_marked: Option<(usize, usize)> = None;
    for ((number, hunk), place) in (1..).zip(hunks).zip(places) {
        says_end |= hunk.lines.iter().any(|line| line.ends_file);
        for edit in place.edits {
            let (Edit::Remove(at) | Edit::Insert { at, .. }) = edit;
            let Some(kept) = rows.get(cursor..at) else {
                let place = place.start + 1;
                return Err(Refusal::OutOfOrder { place }.of_hunk(number));
            };
            result.extend(kept.iter().map(keep));
            cursor = at;
            match edit {
                Edit::Remove(_) => cursor += 1,
                Edit::Insert {
                    text, ends_file, ..
                } => {
                    if ends_file {
                        end_marked = Some((number, result.len()));
                    }
                    result.push(NewRow { text, ending });
                }
            }
        }
    }
    result.extend(rows[cursor..].iter().map(keep));
    if let Some((number, at)) = end_marked {
        if at + 1 != result.len() {
            let line = quote(&result[at].text);
            return Err(Refusal::NotAtEnd { line }.of_hunk(number));
        }
        result[at].ending = "";
    }
    let lacks_newline = rows.last().is_some_and(|row| row.ending.is_empty());
    if let Some(last) = result.last_mut().filter(|_| lacks_newline && !says_end) {
        last.ending = "";
    }
    Ok(text_of(&result, ending))
}

/// Joins the lines; only the last may lack an ending.
fn text_of(rows: &[NewRow<'_>], ending: &str) -> String {
    let mut text = String::new();
    for (at, row) in rows.iter().enumerate() {
        text.push_str(&row.text);
        let is_open = row.ending.is_empty() && at + 1 < rows.len();
        text.push_str(if is_open { ending } else { row.ending });
    }
    text
}
