//! Decodes the bytes of a task file and splits the text into front matter and body.

use std::ops::Range;

use crate::lint::{FindingLocation, LintFinding, to_u32};
use crate::printable::name_character;

/// The largest accepted task file, in bytes.
pub const MAX_TASK_BYTES: usize = 256 * 1024;

/// The largest accepted front matter, in bytes.
pub const MAX_FRONT_MATTER_BYTES: usize = 16 * 1024;

/// Written by some editors before the first line.
pub(super) const BYTE_ORDER_MARK: char = '\u{feff}';

/// The parts of a task file's text.
pub(super) struct TaskParts {
    /// The front matter between its two `---` lines. It starts in line 2.
    pub(super) front: Range<usize>,
    /// The line of the closing `---`.
    pub(super) closing_line: u32,
    /// Byte offset of the body.
    pub(super) body: usize,
}

/// Checks size, encoding and characters. Returns the text with `\n` line ends and without a byte
/// order mark, but otherwise unchanged.
pub(super) fn decode_text(bytes: &[u8]) -> Result<String, LintFinding> {
    if bytes.len() > MAX_TASK_BYTES {
        return Err(LintFinding::error(
            "task-too-large",
            format!("task is {}, limit 256 KiB", format_size(bytes.len())),
            "move long material into files in the repository and reference them in the task",
        ));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        LintFinding::error(
            "not-utf8",
            "the task file is not UTF-8 text",
            "save the file as UTF-8",
        )
        .on_line(line_after(before))
    })?;
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let text = text.replace("\r\n", "\n");
    refuse_control_characters(&text)?;
    Ok(text)
}

fn line_after(before: &[u8]) -> u32 {
    to_u32(before.split(|byte| *byte == b'\n').count())
}

/// Formats a size above the limit, rounded so that it never equals the limit.
fn format_size(bytes: usize) -> String {
    let (tenths, unit) = if bytes < 1_000_000 {
        ((bytes * 10).div_ceil(1024), "KiB")
    } else {
        ((bytes + 50_000) / 100_000, "MB")
    };
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

fn refuse_control_characters(text: &str) -> Result<(), LintFinding> {
    let mut bad = text
        .char_indices()
        .filter(|(_, c)| c.is_control() && !matches!(c, '\n' | '\t'));
    let Some((first, character)) = bad.next() else {
        return Ok(());
    };
    let line_start = text[..first].rfind('\n').map_or(0, |newline| newline + 1);
    let more = match bad.count() {
        0 => String::new(),
        others => format!(", the first of {}", others + 1),
    };
    Err(LintFinding::error(
        "control-character",
        format!(
            "the file contains the control character {}{more}",
            name_character(character)
        ),
        "remove it; line breaks and tabs are the only control characters allowed",
    )
    .at_location(FindingLocation {
        line: line_after(&text.as_bytes()[..first]),
        column: to_u32(text[line_start..first].chars().count() + 1),
    }))
}

/// Finds the two `---` lines. Later ones belong to the body.
pub(super) fn split(text: &str) -> Result<TaskParts, LintFinding> {
    if text.trim().is_empty() {
        return Err(LintFinding::error(
            "empty-task",
            "the task file is empty",
            "create one with `ralph init`",
        ));
    }
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if !is_fence(first) {
        return Err(LintFinding::error(
            "missing-front-matter",
            "the first line is not `---`",
            "start the file with a line `---`, then the settings, then another line `---`",
        )
        .on_line(1));
    }
    let mut end = first.len();
    for (index, line) in lines.enumerate() {
        if is_fence(line) {
            refuse_large_front_matter(end - first.len())?;
            return Ok(TaskParts {
                front: first.len()..end,
                closing_line: to_u32(index + 2),
                body: end + line.len(),
            });
        }
        end += line.len();
    }
    Err(LintFinding::error(
        "unclosed-front-matter",
        "the front matter that starts here has no closing `---`",
        "add a line `---` below the last setting",
    )
    .on_line(1))
}

fn is_fence(line: &str) -> bool {
    line.trim_end_matches([' ', '\t', '\n']) == "---"
}

fn refuse_large_front_matter(bytes: usize) -> Result<(), LintFinding> {
    if bytes <= MAX_FRONT_MATTER_BYTES {
        return Ok(());
    }
    Err(LintFinding::error(
        "front-matter-too-large",
        format!("front matter is {}, limit 16 KiB", format_size(bytes)),
        "move long texts into the body",
    )
    .on_line(1))
}
