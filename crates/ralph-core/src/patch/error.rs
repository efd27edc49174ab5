//! Why a patch is refused, in words for the model that wrote it.

/// The longest patch that is read, in bytes.
pub const MAX_PATCH_BYTES: usize = 1024 * 1024;
/// The largest file that a patch may result in, in bytes.
pub const MAX_FILE_BYTES: usize = 5 * 1024 * 1024;
/// The longest quote of a line in an error, in characters.
const MAX_QUOTE_CHARS: usize = 120;
/// How many places an error names before it only counts them.
const MAX_LISTED_LINES: usize = 5;

/// Why a patch is refused. The file is as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// Longer than [`MAX_PATCH_BYTES`].
    #[error("the patch has {0} bytes, at most {MAX_PATCH_BYTES} are allowed")]
    TooLarge(usize),
    /// The result is larger than [`MAX_FILE_BYTES`].
    #[error("the patched file would have {0} bytes, at most {MAX_FILE_BYTES} are allowed")]
    ResultTooLarge(usize),
    /// There is no `@@` line.
    #[error("the patch has no hunk; a unified diff with `@@` lines is needed")]
    NoHunks,
    /// A line of another patch format.
    #[error("`{0}` belongs to another format; a unified diff with one `@@` per hunk is needed")]
    NotUnified(String),
    /// A header names another file than the action.
    #[error("the patch is for `{named}`, the action is for `{path}`")]
    OtherFile {
        /// The file of the action.
        path: String,
        /// The file of the header.
        named: String,
    },
    /// A later header names a second file.
    #[error("the patch changes `{path}` and `{named}`; one patch changes one file")]
    SeveralFiles {
        /// The file of the action.
        path: String,
        /// The other file.
        named: String,
    },
    /// Moves a file.
    #[error("the patch renames or copies a file; write the new file and delete the old one")]
    Renames,
    /// Has no text to patch.
    #[error("the patch is binary; only text is patched")]
    Binary,
    /// Is about a symbolic link.
    #[error(
        "the patch is for a symbolic link (mode 120000); use a `run` action with `ln -s` or `rm`"
    )]
    Link,
    /// Is about a submodule.
    #[error("the patch is for a submodule (mode 160000); only files are patched")]
    Submodule,
    /// Has a mode that no file can have.
    #[error("the patch has the file mode `{0}`; 100644 and 100755 are possible")]
    UnknownMode(String),
    /// Says both that the file is new and that it is deleted.
    #[error("the patch both creates and deletes `{0}`; one patch does one of them")]
    CreatesAndDeletes(String),
    /// Changes a file that is not there.
    #[error("`{0}` does not exist, so there is nothing to change; add all lines to create it")]
    Missing(String),
    /// Creates a file that is there.
    #[error("`{0}` already exists with other content; patch its lines or write the whole file")]
    Exists(String),
    /// All new text is there and the old is not.
    #[error("the patch is already applied: the file has its new lines")]
    AlreadyApplied,
    /// One hunk cannot be applied, so none is.
    #[error("hunk {number}: {reason}")]
    Hunk {
        /// The hunk's number in the patch, from 1.
        number: usize,
        /// What is wrong with it.
        reason: HunkError,
    },
}

/// Why one hunk cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HunkError {
    /// The old lines are nowhere in the file.
    #[error("its old lines are not in the file; the first that does not fit is `{line}`")]
    NotFound {
        /// That line.
        line: String,
    },
    /// The old lines are at several places.
    #[error(
        "its old lines fit at lines {places} and its line number does not decide; quote more lines around the change"
    )]
    Ambiguous {
        /// The line numbers.
        places: String,
    },
    /// The old lines are at several places, and the section does not choose one of them.
    #[error(
        "its old lines fit at lines {places}, and neither its line number nor its section `{section}` decides; quote more lines around the change"
    )]
    AmbiguousInSection {
        /// The line numbers.
        places: String,
        /// The section that the `@@` line names.
        section: String,
    },
    /// No line tells where the additions go.
    #[error(
        "it quotes no line of the file, so its place is not known; quote lines around `{line}`"
    )]
    NoContext {
        /// The first added line.
        line: String,
    },
    /// Old and new lines are the same.
    #[error("it changes nothing: no line with `+` or `-` makes a difference")]
    ChangesNothing,
    /// The text stops in the middle of a change.
    #[error(
        "it ends with `{line}` before it has the number of lines that its `@@` line states; if it is whole, quote a line after the change"
    )]
    CutOff {
        /// The last line.
        line: String,
    },
    /// A changed line follows after something that ended the hunk, or a header is inside it.
    #[error("`{line}` belongs to no hunk; a context line in a hunk starts with a space")]
    Stray {
        /// The line that belongs to no hunk.
        line: String,
    },
    /// The marker of a missing final newline is in the middle.
    #[error("`\\ No newline at end of file` follows `{line}`, which is not the last line")]
    NotAtEnd {
        /// The line before the marker.
        line: String,
    },
    /// The place is known, the indentation of the added lines is not.
    #[error(
        "its old lines fit at line {place} only with another indentation, and which the added lines need is not clear; quote the indentation as it is"
    )]
    Indentation {
        /// The line number.
        place: usize,
    },
    /// The file has one more line inside the hunk, and the additions could go on either side.
    #[error(
        "the file has the line `{line}` between its lines, and where the change goes is not clear; quote that line too"
    )]
    LeftOut {
        /// The file's line.
        line: String,
    },
    /// Changes lines before those of an earlier hunk.
    #[error("it belongs at line {place}, which is not after the hunk before it; order the hunks")]
    OutOfOrder {
        /// The line number.
        place: usize,
    },
    /// This hunk is in the file already, others are not.
    #[error(
        "the file already has its new lines; leave it out, or quote a line after them to add them once more"
    )]
    AlreadyPresent,
    /// A new or deleted file is written as several hunks.
    #[error("a new or deleted file is one hunk with all its lines")]
    SecondHunk,
    /// A new file quotes old lines.
    #[error("the file is new, but `{line}` is not an added line; start each line with `+`")]
    NewFileQuotes {
        /// The line.
        line: String,
    },
    /// A deletion does not quote the whole file.
    #[error("it deletes the file, but its lines differ from the file's at `{line}`")]
    DeletesOther {
        /// The first line that differs.
        line: String,
    },
    /// Looking for the place took too long.
    #[error("its lines repeat too often in the file to find one place; quote lines that are rare")]
    TooManyMatches,
}

impl HunkError {
    /// Returns the error of the whole patch.
    pub(super) fn for_hunk(self, number: usize) -> PatchError {
        PatchError::Hunk {
            number,
            reason: self,
        }
    }

    /// Names the section that did not decide either.
    pub(super) fn with_section(self, section: Option<&str>) -> Self {
        match (self, section) {
            (Self::Ambiguous { places }, Some(section)) => Self::AmbiguousInSection {
                places,
                section: quote(section),
            },
            (refusal, _) => refusal,
        }
    }

    pub(super) fn ambiguous(starts: impl IntoIterator<Item = usize>) -> Self {
        let mut lines = starts.into_iter().map(|start| (start + 1).to_string());
        let named: Vec<String> = lines.by_ref().take(MAX_LISTED_LINES).collect();
        let places = match lines.count() {
            0 => named.join(", "),
            more => format!("{} and {more} more", named.join(", ")),
        };
        Self::Ambiguous { places }
    }
}

/// Returns a line as errors quote it.
pub(super) fn quote(line: &str) -> String {
    let mut quoted: String = line.chars().take(MAX_QUOTE_CHARS).collect();
    if quoted.len() < line.len() {
        quoted.push('…');
    }
    quoted
}
