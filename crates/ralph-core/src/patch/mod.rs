//! Applies a model's unified diff to the text of one file.
//!
//! Models write diffs with wrong numbers, lost spaces and prose around them. [`apply`] accepts
//! unambiguous patches and rejects the others, naming the hunk; it never applies half a patch. The
//! model reads the error in its next prompt. The `patch` action calls it.
//!
//! - `parse` parses the text into `hunk`s; `header` parses file names and `@@` lines, `mode` file
//!   modes.
//! - `locate` finds the position of a hunk; `index` searches lines, `nearby` finds positions that
//!   almost match, `indent_shift` those with a different indentation, `section` those below a
//!   function or a heading.
//! - `apply` combines the parts, `whole_file` creates and deletes files; `file_lines` splits text
//!   into lines with their endings.
//!
//! # The position of a hunk
//!
//! Lines are compared without their endings and without trailing whitespace. The first matching
//! rule wins:
//!
//! 1. All old lines match at one position: that one. They match at several: the only one in the
//!    section that the `@@` line names, unless its line number is exactly that of another;
//!    otherwise, among those in the section if there are any, the stated line (shifted by the
//!    offset of the previous hunk), or the position that is at least four times closer to it than
//!    the next one and not farther away than the length of the hunk; otherwise the hunk is
//!    rejected. Without a line number, several positions that the section does not narrow down to
//!    one are rejected. So is a position other than the stated one if the stated one would match,
//!    too, with a different indentation or with the line that is missing according to the counts.
//! 2. The file contains the new lines but not the old ones, or the old ones only elsewhere: the
//!    hunk is already applied.
//! 3. All old lines match at one position with one consistent change of indentation: that one, and
//!    the added lines are shifted in the same way.
//! 4. All but one match at one position, and the exception is a misquoted first or last context
//!    line or a context line that the patch omits: that one. Added lines next to an omitted line
//!    are rejected, because they could go before or after it.
//!
//! The changes of a hunk must come after those of the previous hunks.

mod apply;
mod error;
mod file_lines;
mod header;
mod hunk;
mod indent_shift;
mod index;
mod locate;
mod mode;
mod nearby;
mod parse;
mod section;
#[cfg(test)]
mod tests;
mod whole_file;

pub use apply::{PatchedFile, apply, patched_mode};
pub use error::{HunkError, MAX_FILE_BYTES, MAX_PATCH_BYTES, PatchError};
pub use mode::FileMode;
