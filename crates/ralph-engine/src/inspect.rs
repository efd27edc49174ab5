//! Reads the workspace of a running run: a file, the tree, the current diff.
//!
//! Nothing here changes the workspace or its repository, and every result has a limit, so another
//! task can call it at any moment with the run's sandbox. A result may show a state between two
//! steps of the running command. Texts are not redacted: the caller must do that.

use std::collections::VecDeque;
use std::time::Duration;

use ralph_core::id::CommitId;
use ralph_core::path::{SandboxPath, WorkspacePath};
use ralph_core::ports::{Sandbox, SandboxEntryKind, SandboxError};

use crate::error::RunError;
use crate::git::SandboxGit;

/// The largest file that is read.
pub const MAX_FILE_BYTES: u64 = 4 << 20;
/// The longest diff that is returned.
pub const MAX_DIFF_BYTES: usize = 4 << 20;
/// The most entries of a tree.
pub const MAX_TREE_ENTRIES: usize = 20_000;
/// The deepest directory whose entries are listed.
const MAX_TREE_DEPTH: usize = 64;
/// The time limit of a diff: a command can fill the workspace with anything.
const DIFF_TIMEOUT: Duration = Duration::from_secs(30);

/// A file or directory of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceEntry {
    /// Relative to the repository's root.
    pub path: String,
    /// Links are not followed.
    pub kind: SandboxEntryKind,
    /// In bytes.
    pub size: u64,
}

/// The files and directories of the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceTree {
    /// Directories precede their entries; `.git` is left out.
    pub entries: Vec<WorkspaceEntry>,
    /// Whether entries are missing because of a limit.
    pub is_truncated: bool,
}

/// The difference between a commit and the current files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceDiff {
    /// A patch in git's format. New files are part of it, ignored files and the run's own files are
    /// not.
    pub patch: Vec<u8>,
    /// Whether its end is missing because of a limit.
    pub is_truncated: bool,
}

/// Returns the content of a file. One that is larger than [`MAX_FILE_BYTES`] is an error, and so is a
/// path with a link: it could lead to git's own directory.
pub async fn read_file(
    sandbox: &dyn Sandbox,
    path: &WorkspacePath,
) -> Result<Vec<u8>, SandboxError> {
    refuse_links(sandbox, path).await?;
    sandbox
        .read(&SandboxPath::in_repo(path), MAX_FILE_BYTES)
        .await
}

/// Returns an error if a part of the path is a link or does not exist.
async fn refuse_links(sandbox: &dyn Sandbox, path: &WorkspacePath) -> Result<(), SandboxError> {
    let mut directory = String::new();
    for part in path.parts() {
        let missing = || SandboxError::NotFound(path.to_string());
        let target = directory_path(&directory).ok_or_else(missing)?;
        let entries = sandbox.list(&target).await?;
        let entry = entries.iter().find(|entry| entry.name == part);
        if entry.ok_or_else(missing)?.kind == SandboxEntryKind::Link {
            return Err(SandboxError::NotRegular(path.to_string()));
        }
        directory = join(&directory, part);
    }
    Ok(())
}

/// Lists the workspace, directory by directory. A directory that disappears meanwhile has no
/// entries.
pub async fn tree(sandbox: &dyn Sandbox) -> Result<WorkspaceTree, SandboxError> {
    let mut tree = WorkspaceTree::default();
    let mut directories = VecDeque::from([(String::new(), 0)]);
    while let Some((directory, depth)) = directories.pop_front() {
        let Some(target) = directory_path(&directory) else {
            tree.is_truncated = true;
            continue;
        };
        let entries = match sandbox.list(&target).await {
            Ok(entries) => entries,
            Err(SandboxError::NotFound(_) | SandboxError::NotRegular(_)) if depth > 0 => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let path = join(&directory, &entry.name);
            if path == ".git" {
                continue;
            }
            if tree.entries.len() == MAX_TREE_ENTRIES {
                tree.is_truncated = true;
                return Ok(tree);
            }
            if entry.kind == SandboxEntryKind::Directory {
                if depth < MAX_TREE_DEPTH {
                    directories.push_back((path.clone(), depth + 1));
                } else {
                    tree.is_truncated = true;
                }
            }
            tree.entries.push(WorkspaceEntry {
                path,
                kind: entry.kind,
                size: entry.size,
            });
        }
    }
    Ok(tree)
}

/// Returns the difference between a commit and the current files.
pub async fn diff(sandbox: &dyn Sandbox, from: &CommitId) -> Result<WorkspaceDiff, RunError> {
    let git = SandboxGit::new(sandbox);
    let mut patch = git
        .diff_unlocked(from, MAX_DIFF_BYTES + 1, DIFF_TIMEOUT)
        .await?;
    let is_truncated = patch.len() > MAX_DIFF_BYTES;
    patch.truncate(MAX_DIFF_BYTES);
    Ok(WorkspaceDiff {
        patch,
        is_truncated,
    })
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() {
        name.to_owned()
    } else {
        format!("{directory}/{name}")
    }
}

/// Returns the path of a directory in the workspace; none for a name that an action could not use
/// either.
fn directory_path(directory: &str) -> Option<SandboxPath> {
    if directory.is_empty() {
        return Some(SandboxPath::repo());
    }
    match WorkspacePath::parse(directory) {
        Ok(path) => Some(SandboxPath::in_repo(&path)),
        Err(_) => None,
    }
}
