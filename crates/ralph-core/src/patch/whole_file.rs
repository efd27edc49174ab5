//! Patches that create or delete a file.

use super::apply::PatchedFile;
use super::error::{HunkError, PatchError, quote};
use super::file_lines;
use super::hunk::{Hunk, HunkLineKind};
use super::parse::{ParsedPatch, PatchEffect};

/// Creates the file from the one hunk that adds all its lines.
pub(super) fn create(
    path: &str,
    original: Option<&str>,
    diff: ParsedPatch<'_>,
) -> Result<PatchedFile, PatchError> {
    let mut patched = PatchedFile {
        text: Some(String::new()),
        mode: diff.mode,
        fuzzy: false,
        notes: diff.notes,
    };
    let Some(hunk) = only_hunk(&diff.hunks)? else {
        // Git writes an empty new file without a hunk.
        return match (diff.effect, original) {
            (PatchEffect::Created, None) => Ok(patched),
            (PatchEffect::Created, Some("")) => Err(PatchError::AlreadyApplied),
            (PatchEffect::Created, Some(_)) => Err(PatchError::Exists(path.to_owned())),
            // A change of mode needs a file.
            (PatchEffect::Changed, _) if diff.mode.is_some() => {
                Err(PatchError::Missing(path.to_owned()))
            }
            (PatchEffect::Changed | PatchEffect::Deleted, _) => Err(PatchError::NoHunks),
        };
    };
    let starts_after_first_line = hunk.ranges.is_some_and(|stated| stated.old_start > 1);
    let quotes = hunk.old_lines().find(|line| !line.bare);
    if diff.effect != PatchEffect::Created && (starts_after_first_line || quotes.is_some()) {
        return Err(PatchError::Missing(path.to_owned()));
    }
    if let Some(line) = quotes {
        let line = quote(line.text);
        return Err(HunkError::NewFileQuotes { line }.for_hunk(1));
    }
    if hunk.lines.iter().any(|line| line.bare) {
        patched.fuzzy = true;
        let note = "hunk 1: empty lines without `+` were added as empty lines";
        patched.notes.push(note.into());
    }
    let text = added_text(hunk);
    match original {
        None | Some("") => {
            patched.text = Some(text);
            Ok(patched)
        }
        Some(existing) if existing.lines().eq(text.lines()) => Err(PatchError::AlreadyApplied),
        Some(_) => Err(PatchError::Exists(path.to_owned())),
    }
}

fn added_text(hunk: &Hunk<'_>) -> String {
    let ending = if hunk.adds_crlf_lines() { "\r\n" } else { "\n" };
    let mut text = String::new();
    for line in &hunk.lines {
        text.push_str(line.text);
        text.push_str(if line.ends_file { "" } else { ending });
    }
    text
}

/// Deletes the file if the one hunk removes all its lines.
pub(super) fn delete(
    original: Option<&str>,
    diff: ParsedPatch<'_>,
) -> Result<PatchedFile, PatchError> {
    let original = original.ok_or(PatchError::AlreadyApplied)?;
    let mut patched = PatchedFile {
        text: None,
        mode: None,
        fuzzy: false,
        notes: diff.notes,
    };
    let rows = file_lines::split(original);
    let Some(hunk) = only_hunk(&diff.hunks)? else {
        return if rows.is_empty() {
            Ok(patched)
        } else {
            Err(PatchError::NoHunks)
        };
    };
    let differs = |line: &str| {
        let line = quote(line);
        HunkError::DeletesOther { line }.for_hunk(1)
    };
    for (at, line) in hunk.lines.iter().enumerate() {
        let row = rows.get(at).ok_or_else(|| differs(line.text))?;
        let is_removed = line.kind == HunkLineKind::Removed || line.bare;
        if !is_removed || row.text.trim_end() != line.text.trim_end() {
            return Err(differs(line.text));
        }
        patched.fuzzy |= row.text != line.text || line.bare;
    }
    match rows.get(hunk.lines.len()) {
        Some(row) => Err(differs(row.text)),
        None => Ok(patched),
    }
}

fn only_hunk<'h, 'a>(hunks: &'h [Hunk<'a>]) -> Result<Option<&'h Hunk<'a>>, PatchError> {
    match hunks {
        [] => Ok(None),
        [hunk] => Ok(Some(hunk)),
        [..] => Err(HunkError::SecondHunk.for_hunk(2)),
    }
}
