//! The files of a run's workspace: those in its sandbox, or of its last commit on the host.
//!
//! Texts are redacted here: a command in the sandbox can print a secret into a file.

use std::sync::Arc;

use ralph_core::id::CommitId;
use ralph_core::path::WorkspacePath;
use ralph_core::ports::{Sandbox, SandboxEntryKind, SandboxError};
use ralph_core::state::RunState;
use ralph_engine::git::{GitError, HostRepo};
use ralph_engine::inspect::{self, MAX_FILE_BYTES};
use ralph_engine::store::{RunDir, RunLock};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::AppError;

/// The origin of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceSource {
    /// The sandbox, with changes that are not committed.
    Sandbox,
    /// The host's copy of a file of the run.
    Host,
    /// The last commit on the host, because the sandbox is gone or another process works in it.
    Commit,
}

/// The kind of an entry of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceEntryKind {
    File,
    Directory,
    /// A symbolic link, which is not followed.
    Link,
    /// A pipe, a socket, a device or a submodule.
    Special,
}

/// An entry of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct WorkspaceFile {
    /// Relative to the repository's root.
    pub path: String,
    pub kind: WorkspaceEntryKind,
    /// In bytes; 0 for a directory.
    pub size: u64,
}

/// The files of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct WorkspaceListing {
    pub source: WorkspaceSource,
    /// Directories precede their entries; `.git` is left out.
    pub entries: Vec<WorkspaceFile>,
    /// Whether entries are missing because of a limit.
    pub cut: bool,
}

/// A patch in git's format, redacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct WorkspacePatch {
    pub source: WorkspaceSource,
    pub patch: String,
    /// Whether its end is missing because of a limit.
    pub cut: bool,
}

/// Why a file of the workspace cannot be read.
#[derive(Debug)]
pub enum WorkspaceFileError {
    NotFound,
    /// It is a link, a directory or a special file, or leads outside.
    Refused(String),
    /// It is larger than the limit.
    TooLarge(String),
    App(AppError),
}

impl From<AppError> for WorkspaceFileError {
    fn from(error: AppError) -> Self {
        Self::App(error)
    }
}

/// A workspace that is open for reading.
pub struct OpenWorkspace {
    files: OpenFiles,
    state: RunState,
    repo: HostRepo,
}

enum OpenFiles {
    /// A run of this process works in it.
    Shared(Arc<dyn Sandbox>),
    /// No process works in it.
    Attached {
        sandbox: Box<dyn Sandbox>,
        /// Prevents a process from starting to work in it.
        _lock: RunLock,
    },
    Commit,
}

/// Opens the workspace of a run.
pub async fn open_workspace(
    dir: &RunDir,
    state: &RunState,
    app: &App,
) -> Result<OpenWorkspace, AppError> {
    Ok(OpenWorkspace {
        files: open_files(dir, state, app).await?,
        state: state.clone(),
        repo: app.providers()?.git()?.repo(dir.repo()),
    })
}

async fn open_files(dir: &RunDir, state: &RunState, app: &App) -> Result<OpenFiles, AppError> {
    let Some(id) = state.sandbox.as_ref().filter(|_| state.workspace_ready) else {
        return Ok(OpenFiles::Commit);
    };
    if let Some(sandbox) = app.open_sandboxes().get(id) {
        return Ok(OpenFiles::Shared(sandbox));
    }
    if dir.is_held() {
        return Ok(OpenFiles::Commit);
    }
    let Some(lock) = dir.lock()? else {
        return Ok(OpenFiles::Commit);
    };
    let sandboxes = app.providers()?.sandbox_provider_for(&state.plan)?;
    match sandboxes.attach(id).await {
        Ok(Some(sandbox)) => Ok(OpenFiles::Attached {
            sandbox,
            _lock: lock,
        }),
        Ok(None) => Ok(OpenFiles::Commit),
        Err(error) => {
            tracing::warn!(%error, "cannot open sandbox `{id}`; its last commit is shown");
            Ok(OpenFiles::Commit)
        }
    }
}

impl OpenWorkspace {
    fn sandbox(&self) -> Option<&dyn Sandbox> {
        match &self.files {
            OpenFiles::Shared(sandbox) => Some(&**sandbox),
            OpenFiles::Attached { sandbox, .. } => Some(&**sandbox),
            OpenFiles::Commit => None,
        }
    }

    /// Returns where the files come from.
    pub fn source(&self) -> WorkspaceSource {
        match &self.files {
            OpenFiles::Shared(_) | OpenFiles::Attached { .. } => WorkspaceSource::Sandbox,
            OpenFiles::Commit => WorkspaceSource::Commit,
        }
    }

    /// Returns the content of a file as it is. The caller redacts it.
    pub async fn read_file(&self, path: &WorkspacePath) -> Result<Vec<u8>, WorkspaceFileError> {
        let Some(sandbox) = self.sandbox() else {
            return self.committed_file(path).await;
        };
        inspect::read_file(sandbox, path)
            .await
            .map_err(|error| match error {
                SandboxError::NotFound(_) => WorkspaceFileError::NotFound,
                SandboxError::Escapes(_) | SandboxError::NotRegular(_) => {
                    WorkspaceFileError::Refused(error.to_string())
                }
                SandboxError::TooLarge { .. } => WorkspaceFileError::TooLarge(error.to_string()),
                SandboxError::Io { ref source, .. } if is_about_path(source) => {
                    WorkspaceFileError::Refused(error.to_string())
                }
                SandboxError::Gone(_)
                | SandboxError::Spawn { .. }
                | SandboxError::Interrupted { .. }
                | SandboxError::Provider(_)
                | SandboxError::Io { .. } => self.unreadable(&error.to_string()).into(),
            })
    }

    async fn committed_file(&self, path: &WorkspacePath) -> Result<Vec<u8>, WorkspaceFileError> {
        let head = &self.state.head;
        let failed = |error: GitError| self.unreadable(&error.to_string());
        let entry = self.repo.commit_entry(head, path).await.map_err(failed)?;
        let Some(entry) = entry else {
            return Err(WorkspaceFileError::NotFound);
        };
        if entry.kind != SandboxEntryKind::File {
            let why = format!("`{path}` is not a regular file");
            return Err(WorkspaceFileError::Refused(why));
        }
        let bytes = self.repo.commit_file(head, path, MAX_FILE_BYTES).await;
        bytes.map_err(failed)?.ok_or_else(|| {
            let size = entry.size;
            WorkspaceFileError::TooLarge(format!(
                "`{path}` has {size} bytes, at most {MAX_FILE_BYTES} are read"
            ))
        })
    }

    /// Lists the files.
    pub async fn listing(&self) -> Result<WorkspaceListing, AppError> {
        let (entries, cut) = match self.sandbox() {
            Some(sandbox) => {
                let tree = inspect::tree(sandbox).await;
                let tree = tree.map_err(|error| self.unreadable(&error.to_string()))?;
                let entries = tree.entries.into_iter();
                let entries = entries.map(|entry| entry_of(entry.path, entry.kind, entry.size));
                (entries.collect(), tree.is_truncated)
            }
            None => self.committed_entries().await?,
        };
        Ok(WorkspaceListing {
            source: self.source(),
            entries,
            cut,
        })
    }

    async fn committed_entries(&self) -> Result<(Vec<WorkspaceFile>, bool), AppError> {
        let entries = self.repo.commit_entries(&self.state.head).await;
        let entries = entries.map_err(|error| self.unreadable(&error.to_string()))?;
        let is_listed = entries.is_some();
        let mut entries: Vec<WorkspaceFile> = entries
            .unwrap_or_default()
            .into_iter()
            .map(|entry| entry_of(entry.path, entry.kind, entry.size))
            .collect();
        let cut = !is_listed || entries.len() > inspect::MAX_TREE_ENTRIES;
        entries.truncate(inspect::MAX_TREE_ENTRIES);
        Ok((entries, cut))
    }

    /// Returns the difference between a commit and the files, as it is. The caller redacts it.
    pub async fn diff(&self, from: &CommitId) -> Result<(Vec<u8>, bool), AppError> {
        if let Some(sandbox) = self.sandbox() {
            let diff = inspect::diff(sandbox, from).await;
            let diff = diff.map_err(|error| self.unreadable(&error.to_string()))?;
            return Ok((diff.patch, diff.is_truncated));
        }
        if *from == self.state.head {
            return Ok((Vec::new(), false));
        }
        let patch = self.repo.patch(from, &self.state.head).await;
        let mut patch = patch.map_err(|error| self.unreadable(&error.to_string()))?;
        let cut = patch.len() > inspect::MAX_DIFF_BYTES;
        patch.truncate(inspect::MAX_DIFF_BYTES);
        Ok((patch, cut))
    }

    fn unreadable(&self, why: &str) -> AppError {
        let run = &self.state.plan.run;
        AppError::runtime(
            format!("cannot read the workspace of run `{run}`"),
            why,
            format!("check its status with `ralph show {run}`"),
        )
    }
}

/// Returns whether the path causes an error, such as a file in the place of a directory.
fn is_about_path(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::NotADirectory
            | std::io::ErrorKind::PermissionDenied
            | std::io::ErrorKind::InvalidFilename
            | std::io::ErrorKind::InvalidInput
    )
}

fn entry_of(path: String, kind: SandboxEntryKind, size: u64) -> WorkspaceFile {
    let kind = match kind {
        SandboxEntryKind::File => WorkspaceEntryKind::File,
        SandboxEntryKind::Directory => WorkspaceEntryKind::Directory,
        SandboxEntryKind::Link => WorkspaceEntryKind::Link,
        SandboxEntryKind::Special => WorkspaceEntryKind::Special,
    };
    let size = match kind {
        WorkspaceEntryKind::Directory => 0,
        WorkspaceEntryKind::File | WorkspaceEntryKind::Link | WorkspaceEntryKind::Special => size,
    };
    WorkspaceFile { path, kind, size }
}
