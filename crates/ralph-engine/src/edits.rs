//! The user's edits of files: stored on the host before the command names them, and applied only to
//! the content that the user saw.

use ralph_core::id::Digest;
use ralph_core::path::{SandboxPath, WorkspacePath};
use ralph_core::ports::{Sandbox, SandboxError, WriteMode};
use ralph_core::run::FileEdit;

use crate::durable::{self, StoreError};
use crate::error::RunError;
use crate::inspect;
use crate::recorder::Recorder;
use crate::store::RunDir;
use crate::user_commands::CommandResult;

/// The notes of a run, as a path of the workspace.
pub const NOTES: &str = ".ralph/notes.md";
/// The end of the failure of an edit whose file is not the one that the user saw.
pub const CHANGED: &str = "has changed since you read it";
/// The largest content of an edited file.
pub const MAX_EDIT_BYTES: usize = 1 << 20;

/// Stores a new content, which a command then names.
pub fn store_edit(dir: &RunDir, bytes: &[u8]) -> Result<Digest, StoreError> {
    let digest = Digest::compute(bytes);
    let path = dir.edit(&digest);
    path.parent().map_or(Ok(()), durable::create_dir)?;
    durable::write(&path, bytes)?;
    Ok(digest)
}

/// Puts a stored content in place of the one that the user saw. A file that has the new content
/// already is a success, so that the command can be repeated after a crash.
pub(crate) async fn edit_file(
    recorder: &Recorder,
    edit: &FileEdit,
    sandbox: Option<&dyn Sandbox>,
) -> Result<CommandResult, RunError> {
    let path = recorder.dir.edit(&edit.content);
    let Some(bytes) = durable::read_if_present(&path)? else {
        return Ok(CommandResult::failure("the new content is gone"));
    };
    if Digest::compute(&bytes) != edit.content {
        return Ok(CommandResult::failure("the new content was changed"));
    }
    if edit.path.as_str() == NOTES {
        let notes = recorder.files.text("notes.md")?;
        let current = Some(Digest::compute(notes.as_bytes()));
        if let Some(result) = compare(edit, current.as_ref()) {
            return Ok(result);
        }
        recorder.files.replace("notes.md", &bytes)?;
        return Ok(replaced(&edit.path));
    }
    let Some(sandbox) = sandbox else {
        return Ok(CommandResult::failure("its sandbox is gone"));
    };
    let current = match inspect::read_file(sandbox, &edit.path).await {
        Ok(bytes) => Some(Digest::compute(&bytes)),
        Err(SandboxError::NotFound(_)) => None,
        Err(error) if is_about_path(&error) => {
            return Ok(CommandResult::failure(error.to_string()));
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(result) = compare(edit, current.as_ref()) {
        return Ok(result);
    }
    let target = SandboxPath::in_repo(&edit.path);
    match sandbox.write(&target, &bytes, WriteMode::Replace).await {
        Ok(()) => Ok(replaced(&edit.path)),
        Err(error) if is_about_path(&error) => Ok(CommandResult::failure(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

/// Returns the result if the current content decides it.
fn compare(edit: &FileEdit, current: Option<&Digest>) -> Option<CommandResult> {
    let path = &edit.path;
    if current == Some(&edit.content) {
        return Some(CommandResult::success(format!("`{path}` has this content")));
    }
    (current != edit.replaces.as_ref())
        .then(|| CommandResult::failure(format!("`{path}` {CHANGED}")))
}

fn replaced(path: &WorkspacePath) -> CommandResult {
    CommandResult::success(format!("`{path}` has the new content"))
}

/// Returns whether an error concerns the path, not the sandbox.
fn is_about_path(error: &SandboxError) -> bool {
    match error {
        SandboxError::Escapes(_)
        | SandboxError::NotRegular(_)
        | SandboxError::NotFound(_)
        | SandboxError::TooLarge { .. }
        | SandboxError::Io { .. } => true,
        SandboxError::Gone(_)
        | SandboxError::Spawn { .. }
        | SandboxError::Interrupted { .. }
        | SandboxError::Provider(_) => false,
    }
}
