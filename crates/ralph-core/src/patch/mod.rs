//! Applies a model's unified diff to the text of one file.
//!
//! Models write diffs with wrong numbers, lost spaces and prose around them. [`apply`] takes what
//! has only one meaning and refuses the rest, naming the hunk; it never applies half a patch.
//! The error's text is what the model reads in its next prompt. The `patch` action calls it.
//!
//! - `parse` turns the text into `hunk`s; `header` reads file names and `@@` lines, `mode` file modes.
//! - `locate` finds where a hunk belongs; `index` searches lines, `nearby` the places that almost
//!   fit, `shift` the ones with another indentation, `section` those below a function or a heading.
//! - `apply` puts the parts together, `whole` creates and deletes files; `rows` holds a text's lines
//!   with their endings.
//!
//! # Where a hunk goes
//!
//! Lines are compared without their endings and without trailing whitespace. The first rule that
//! answers wins:
//!
//! 1. All old lines are found at one place: there. Found at several: at the only place in the section that
//!    the `@@` line names, unless its line number is exactly that of another place; else, among those in the
//!    section if there are any, at the stated line (moved by the offset of the hunk before), else at the place that is at least four times nearer to it
//!    than the next one and no farther than the hunk is long, else refused. Without a line number,
//!    several places that the section does not decide about are refused. So is a place that is not the stated one if the stated
//!    one would fit too with another indentation or with the line that the counts say is lost.
//! 2. The new lines are there and the old are not, or are only elsewhere: the hunk was applied
//!    before.
//! 3. All old lines are found at one place with one consistent change of indentation: there, and
//!    the added lines are moved the same way.
//! 4. All but one are found at one place, the one being a misquoted first or last context line or
//!    a context line that the patch left out: there. Added lines next to a left-out line are
//!    refused, because they could go before or after it.
//!
//! The changes of a hunk must come after those of the hunks before it.

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
