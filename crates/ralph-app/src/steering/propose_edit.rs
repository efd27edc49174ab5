//! A new content of a file, checked and stored before a command names it.

use ralph_core::id::Digest;
use ralph_core::path::WorkspacePath;
use ralph_core::run::FileEdit;
use ralph_engine::edits;
use ralph_engine::store::RunDir;

use crate::app::App;
use crate::error::AppError;
use crate::format;

/// Stores a new content of a file. A known secret in it is rejected: it would reach the sandbox and
/// the run's commits.
pub fn propose_edit(
    dir: &RunDir,
    path: WorkspacePath,
    (bytes, replaces): (&[u8], Option<Digest>),
    app: &App,
) -> Result<FileEdit, AppError> {
    let refused =
        |why: String, fix: &str| Err(AppError::usage(format!("cannot edit `{path}`"), why, fix));
    if bytes.len() > edits::MAX_EDIT_BYTES {
        let (size, limit) = (bytes.len() as u64, edits::MAX_EDIT_BYTES as u64);
        let (size, limit) = (format::bytes(size), format::bytes(limit));
        return refused(
            format!("it has {size}, at most {limit} are allowed"),
            "shorten it",
        );
    }
    if let Some(name) = app.redactor().find_known(bytes) {
        let why = format!("the text contains the value of `{name}`");
        return refused(why, "remove it from the text");
    }
    Ok(FileEdit {
        content: edits::store_edit(dir, bytes)?,
        path,
        replaces,
    })
}
