//! Ensures that the run's files are in real directories: a link or a file in place of one would
//! redirect the runner's writes.

use std::io::ErrorKind;
use std::time::Duration;

use ralph_core::path::SandboxPath;
use ralph_core::ports::{
    Exec, OutputSink, OutputStream, Sandbox, SandboxEntry, SandboxEntryKind, SandboxError,
};

use super::guard::repo_path;
use super::inspect::TamperFinding;
use crate::error::RunError;
use crate::store::RunDir;

pub(super) const STATE_DIR: &str = ".ralph";
const ITERATIONS_DIR: &str = ".ralph/iterations";

/// Returns whether a directory of the repository exists. Any other entry with its name is removed.
pub(super) async fn remove_unless_directory(
    sandbox: &dyn Sandbox,
    name: &str,
) -> Result<bool, RunError> {
    let root = entries(sandbox, &SandboxPath::repo()).await?;
    let path = repo_path(name)?;
    let exists = is_directory(&root, name) && sandbox.list(&path).await.is_ok();
    if !exists {
        sandbox.delete(&path).await?;
    }
    Ok(exists)
}

/// Restores the owner's permissions to the run's directories, which a command may have removed.
pub(super) async fn restore_permissions(sandbox: &dyn Sandbox) -> Result<(), RunError> {
    let script = "chmod u+rwx ../repo; chmod u+rwx ../repo/.git; chmod -R u+rwX ../repo/.ralph";
    let exec = Exec::shell(script, Duration::from_mins(1)).in_dir(SandboxPath::scratch());
    // The next inspection detects missing or replaced entries.
    sandbox.exec(exec, None, &mut IgnoredOutput).await?;
    Ok(())
}

/// Discards output.
struct IgnoredOutput;

impl OutputSink for IgnoredOutput {
    fn chunk(&mut self, _: OutputStream, _: &[u8]) {}
}

/// Removes everything below `.ralph/iterations` that is not the directory of a finished iteration.
pub(super) async fn remove_foreign_iterations(
    sandbox: &dyn Sandbox,
    dir: &RunDir,
) -> Result<Vec<TamperFinding>, RunError> {
    let state = entries(sandbox, &repo_path(STATE_DIR)?).await?;
    if !state.iter().any(|entry| entry.name == "iterations") {
        return Ok(Vec::new());
    }
    let is_unreadable = sandbox.list(&repo_path(ITERATIONS_DIR)?).await.is_err();
    if is_unreadable || !is_directory(&state, "iterations") {
        sandbox.delete(&repo_path(ITERATIONS_DIR)?).await?;
        return Ok(vec![TamperFinding::new(
            ITERATIONS_DIR,
            "not a directory; removed",
        )]);
    }
    let mut findings = Vec::new();
    for entry in entries(sandbox, &repo_path(ITERATIONS_DIR)?).await? {
        let number = entry.name.parse::<u32>();
        let is_finished = number
            .as_ref()
            .is_ok_and(|number| dir.iteration(*number).exists());
        if is_finished && entry.kind == SandboxEntryKind::Directory {
            continue;
        }
        let path = format!("{ITERATIONS_DIR}/{}", entry.name);
        let (Ok(target), true) = (repo_path(&path), is_valid_utf8_name(&entry.name)) else {
            // No path can name such an entry, so the whole directory is removed.
            sandbox.delete(&repo_path(ITERATIONS_DIR)?).await?;
            return Ok(vec![TamperFinding::new(
                ITERATIONS_DIR,
                "contained an entry with an invalid name; removed",
            )]);
        };
        sandbox.delete(&target).await?;
        // A process that crashed while it closed an iteration leaves a part of its files.
        let is_open = number.is_ok_and(|number| dir.open_iteration(number).exists());
        if !is_open {
            findings.push(TamperFinding::new(&path, "not created by ralph; removed"));
        }
    }
    Ok(findings)
}

/// Returns whether a name is exact: names that are not valid UTF-8 contain replacement characters.
fn is_valid_utf8_name(name: &str) -> bool {
    !name.contains(char::REPLACEMENT_CHARACTER)
}

/// Returns the entries of a directory; none if the path is missing or is not a directory.
///
/// Any other error is returned: an empty list would hide changes from the inspection.
async fn entries(sandbox: &dyn Sandbox, path: &SandboxPath) -> Result<Vec<SandboxEntry>, RunError> {
    match sandbox.list(path).await {
        Ok(entries) => Ok(entries),
        Err(SandboxError::NotFound(_) | SandboxError::NotRegular(_) | SandboxError::Escapes(_)) => {
            Ok(Vec::new())
        }
        Err(SandboxError::Io { source, .. }) if source.kind() == ErrorKind::NotADirectory => {
            Ok(Vec::new())
        }
        Err(error) => Err(error.into()),
    }
}

fn is_directory(entries: &[SandboxEntry], name: &str) -> bool {
    entries
        .iter()
        .any(|entry| entry.name == name && entry.kind == SandboxEntryKind::Directory)
}
