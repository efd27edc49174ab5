//! Reasons for rejecting a patch, worded for the model that wrote it.

/// The longest accepted patch, in bytes.
pub const MAX_PATCH_BYTES: usize = 1024 * 1024;
/// The largest accepted result, in bytes.
pub const MAX_FILE_BYTES: usize = 5 * 1024 * 1024;
/// The longest quote of a line in an error, in characters.
const MAX_QUOTE_CHARS: usize = 120;
/// Maximum number of positions that an error lists; the rest is only counted.
const MAX_LISTED_LINES: usize = 5;

/// Why a patch is rejected. The file is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// Longer than [`MAX_PATCH_BYTES`].
    #[error("the patch has {0} bytes, at most {MAX_PATCH_BYTES} are allowed")]
    TooLarge(usize),
    /// The result is larger than [`MAX_FILE_BYTES`].
    #[error("the patched file would have {0} bytes, at most {MAX_FILE_BYTES} are allowed")]
    ResultTooLarge(usize),
    /// The patch has no `@@` line.
    #[error("the patch has no hunks; a unified diff with `@@` lines is required")]
    NoHunks,
    /// A line belongs to another patch format.
    #[error("`{0}` belongs to another format; a unified diff with one `@@` per hunk is required")]
    NotUnified(String),
    /// A header names a file other than that of the action.
    #[error("the patch is for `{named}`, but the action is for `{path}`")]
    OtherFile { path: String, named: String },
    /// A later header names a second file.
    #[error("the patch changes `{path}` and `{named}`; a patch changes only one file")]
    SeveralFiles { path: String, named: String },
    /// The patch renames or copies a file.
    #[error("the patch renames or copies a file; write the new file and delete the old one")]
    Renames,
    /// The patch is binary.
    #[error("the patch is binary; only text can be patched")]
    Binary,
    /// The patch is for a symbolic link.
    #[error(
        "the patch is for a symbolic link (mode 120000); use a `run` action with `ln -s` or `rm`"
    )]
    Link,
    /// The patch is for a submodule.
    #[error("the patch is for a submodule (mode 160000); only files can be patched")]
    Submodule,
    /// The patch has an unsupported file mode.
    #[error("the patch has the file mode `{0}`; only 100644 and 100755 are supported")]
    UnknownMode(String),
    /// The headers mark the file as both new and deleted.
    #[error("the patch both creates and deletes `{0}`; a patch can do only one of them")]
    CreatesAndDeletes(String),
    /// The file to change does not exist.
    #[error("`{0}` does not exist, so there is nothing to change; add all lines to create it")]
    Missing(String),
    /// The file to create already exists.
    #[error("`{0}` already exists with different content; patch its lines or write the whole file")]
    Exists(String),
    /// The file has all new lines and lacks the old ones.
    #[error("the patch is already applied: the file has its new lines")]
    AlreadyApplied,
    /// One hunk cannot be applied, so none is.
    #[error("hunk {number}: {reason}")]
    Hunk {
        /// The hunk's number in the patch, from 1.
        number: usize,
        reason: HunkError,
    },
}

/// Why one hunk cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HunkError {
    /// The file does not contain the old lines.
    #[error("its old lines are not in the file; the first mismatch is `{line}`")]
    NotFound {
        /// The first mismatch.
        line: String,
    },
    /// The old lines match at several positions.
    #[error(
        "its old lines match at lines {line_numbers}, and its line number does not select one of them; quote more lines around the change"
    )]
    Ambiguous { line_numbers: String },
    /// The old lines match at several positions, and the section does not select one of them.
    #[error(
        "its old lines match at lines {line_numbers}, and neither its line number nor its section `{section}` selects one of them; quote more lines around the change"
    )]
    AmbiguousInSection {
        line_numbers: String,
        /// The section in the `@@` line.
        section: String,
    },
    /// The hunk has no context for its additions.
    #[error(
        "it quotes no line of the file, so its position is unknown; quote lines around `{line}`"
    )]
    NoContext {
        /// The first added line.
        line: String,
    },
    /// Old and new lines are the same.
    #[error("it changes nothing: its old and new lines are equal")]
    ChangesNothing,
    /// The patch is truncated inside a change.
    #[error(
        "it ends with `{line}` before it reaches the number of lines in its `@@` line; if it is complete, quote a line after the change"
    )]
    CutOff {
        /// The last line.
        line: String,
    },
    /// A changed line follows the end of the hunk, or a header is inside it.
    #[error("`{line}` is not part of a hunk; context lines in a hunk start with a space")]
    Stray { line: String },
    /// The marker for a missing final newline is not at the end.
    #[error("`\\ No newline at end of file` follows `{line}`, which is not the last line")]
    NotAtEnd {
        /// The line before the marker.
        line: String,
    },
    /// The position is known, but the indentation of the added lines is not.
    #[error(
        "its old lines match at line {line_number} only with a different indentation, and that of the added lines is ambiguous; quote the indentation exactly"
    )]
    Indentation { line_number: usize },
    /// The file has one more line inside the hunk, with the additions before or after it.
    #[error(
        "the file has the line `{line}` between its lines, so the position of the change is ambiguous; quote that line, too"
    )]
    LeftOut {
        /// The file's line.
        line: String,
    },
    /// The hunk changes lines before those of an earlier hunk.
    #[error(
        "it belongs at line {line_number}, which is not after the previous hunk; sort the hunks"
    )]
    OutOfOrder { line_number: usize },
    /// This hunk is already applied, but others are not.
    #[error(
        "the file already has its new lines; omit it, or quote a line after them to add them again"
    )]
    AlreadyPresent,
    /// A new or deleted file is split into several hunks.
    #[error("a new or deleted file needs one hunk with all its lines")]
    SecondHunk,
    /// The patch creates a file but quotes old lines.
    #[error("the file is new, but `{line}` is not an added line; start each line with `+`")]
    NewFileQuotes { line: String },
    /// A deletion does not quote the whole file.
    #[error("it deletes the file, but its lines differ from the file's at `{line}`")]
    DeletesOther {
        /// The first line that differs.
        line: String,
    },
    /// The search exceeded its limit.
    #[error("its lines repeat too often in the file to find one position; quote rarer lines")]
    TooManyMatches,
}

impl HunkError {
    /// Converts it to the error of the whole patch.
    pub(super) fn for_hunk(self, number: usize) -> PatchError {
        PatchError::Hunk {
            number,
            reason: self,
        }
    }

    /// Adds the section that did not select a position either.
    pub(super) fn with_section(self, section: Option<&str>) -> Self {
        match (self, section) {
            (Self::Ambiguous { line_numbers }, Some(section)) => Self::AmbiguousInSection {
                line_numbers,
                section: quote(section),
            },
            (error, _) => error,
        }
    }

    pub(super) fn ambiguous(starts: impl IntoIterator<Item = usize>) -> Self {
        let mut lines = starts.into_iter().map(|start| (start + 1).to_string());
        let named: Vec<String> = lines.by_ref().take(MAX_LISTED_LINES).collect();
        let line_numbers = match lines.count() {
            0 => named.join(", "),
            more => format!("{} and {more} more", named.join(", ")),
        };
        Self::Ambiguous { line_numbers }
    }
}

/// Shortens a line for an error.
pub(super) fn quote(line: &str) -> String {
    let mut quoted: String = line.chars().take(MAX_QUOTE_CHARS).collect();
    if quoted.len() < line.len() {
        quoted.push('…');
    }
    quoted
}
