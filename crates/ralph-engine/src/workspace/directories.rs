//! Sees to it that the run's files lie in real directories of their own: a link or a file in the
//! place of one would lead what the runner writes somewhere else.

use std::time::Duration;

use ralph_core::path::SandboxPath;
use ralph_core::ports::{Entry, EntryKind, Exec, OutputSink, Sandbox, Stream};

use super::guard::in_repo;
use super::inspect::Finding;
use crate::error::RunError;
use crate::store::RunDir;

pub(super) const STATE: &str = ".ralph";
const ITERATIONS: &str = ".ralph/iterations";

/// Tells whether a directory of the repository is there. What else has its name is removed.
pub(super) async fn is_there(sandbox: &dyn Sandbox, name: &str) -> Result<bool, RunError> {
    let root = entries(sandbox, &SandboxPath::repo()).await;
    let path = in_repo(name)?;
    let is_there = is_directory(&root, name) && sandbox.list(&path).await.is_ok();
    if !is_there {
        sandbox.delete(&path).await?;
    }
    Ok(is_there)
}

/// Gives the owner back the right to the run's directories, which a command may have taken away.
pub(super) async fn open_up(sandbox: &dyn Sandbox) -> Result<(), RunError> {
    let script = "chmod u+rwx ../repo; chmod u+rwx ../repo/.git; chmod -R u+rwX ../repo/.ralph";
    let exec = Exec::shell(script, Duration::from_mins(1)).in_dir(SandboxPath::scratch());
    // What is missing or another's shows when it is looked at again.
    sandbox.exec(exec, &mut Unheard).await?;
    Ok(())
}

/// Takes output that nobody needs.
struct Unheard;

impl OutputSink for Unheard {
    fn chunk(&mut self, _: Stream, _: &[u8]) {}
}

/// Removes everything below `.ralph/iterations` that is not the directory of a finished iteration.
pub(super) async fn clear_iterations(
    sandbox: &dyn Sandbox,
    dir: &RunDir,
) -> Result<Vec<Finding>, RunError> {
    let state = entries(sandbox, &in_repo(STATE)?).await;
    if !state.iter().any(|entry| entry.name == "iterations") {
        return Ok(Vec::new());
    }
    let is_sealed = sandbox.list(&in_repo(ITERATIONS)?).await.is_err();
    if is_sealed || !is_directory(&state, "iterations") {
        sandbox.delete(&in_repo(ITERATIONS)?).await?;
        return Ok(vec![Finding::new(ITERATIONS, "was no directory; removed")]);
    }
    let mut findings = Vec::new();
    for entry in entries(sandbox, &in_repo(ITERATIONS)?).await {
        let number = entry.name.parse::<u32>().ok();
        let is_finished = number.is_some_and(|number| dir.iteration(number).exists());
        if is_finished && entry.kind == EntryKind::Directory {
            continue;
        }
        let path = format!("{ITERATIONS}/{}", entry.name);
        let Some(place) = in_repo(&path).ok().filter(|_| is_plain(&entry.name)) else {
            // No path leads to such a name; it goes with everything around it.
            sandbox.delete(&in_repo(ITERATIONS)?).await?;
            return Ok(vec![Finding::new(
                ITERATIONS,
                "had a strange entry; removed",
            )]);
        };
        sandbox.delete(&place).await?;
        // A process that died while it closed an iteration leaves a part of its files.
        let is_open = number.is_some_and(|number| dir.open_iteration(number).exists());
        if !is_open {
            findings.push(Finding::new(&path, "not the runner's; removed"));
        }
    }
    Ok(findings)
}

/// Tells whether a name is the one in the directory: what is no text is shown with other characters.
fn is_plain(name: &str) -> bool {
    !name.contains(char::REPLACEMENT_CHARACTER)
}

/// Returns the entries of a directory; none of one that cannot be listed.
async fn entries(sandbox: &dyn Sandbox, path: &SandboxPath) -> Vec<Entry> {
    sandbox.list(path).await.unwrap_or_default()
}

fn is_directory(entries: &[Entry], name: &str) -> bool {
    entries
        .iter()
        .any(|entry| entry.name == name && entry.kind == EntryKind::Directory)
}
