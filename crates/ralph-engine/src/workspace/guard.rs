//! Guards the parts of `.git` that could falsify git's results: its configuration, its hooks, its
//! excludes.

use ralph_core::path::{SandboxPath, WorkspacePath};
use ralph_core::ports::{Sandbox, SandboxError, WriteMode};

use super::directories;
use super::inspect::TamperFinding;
use crate::durable::{self, StoreError};
use crate::error::RunError;
use crate::store::RunDir;

const WATCHED: [&str; 3] = [".git/config", ".git/info/exclude", ".git/info/attributes"];
const MAX_BYTES: u64 = 1 << 20;

/// The contents of the guarded files after the runner created them; none for a file that did not
/// exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GitGuard {
    expected: Vec<(&'static str, Option<Vec<u8>>)>,
}

impl GitGuard {
    /// Records the current state, in memory and on the host.
    pub(super) async fn capture(sandbox: &dyn Sandbox, dir: &RunDir) -> Result<Self, RunError> {
        let mut expected = Vec::new();
        for name in WATCHED {
            let bytes = read_if_present(sandbox, name).await?;
            let path = dir.file(&host_name(name));
            match &bytes {
                Some(bytes) => durable::write(&path, bytes)?,
                None => drop(std::fs::remove_file(&path)),
            }
            expected.push((name, bytes));
        }
        Ok(Self { expected })
    }

    /// Loads the state that an earlier process recorded.
    pub(super) fn load(dir: &RunDir) -> Result<Self, RunError> {
        let load_file = |name: &'static str| -> Result<_, StoreError> {
            let path = dir.file(&host_name(name));
            match std::fs::read(&path) {
                Ok(bytes) => Ok((name, Some(bytes))),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok((name, None)),
                Err(source) => Err(StoreError {
                    doing: "read",
                    path,
                    source,
                }),
            }
        };
        Ok(Self {
            expected: WATCHED
                .into_iter()
                .map(load_file)
                .collect::<Result<_, _>>()?,
        })
    }

    /// Restores changed files. A missing `.git` is ignored here, but another entry of that name is
    /// removed: git would follow it to another repository.
    pub(super) async fn inspect(
        &self,
        sandbox: &dyn Sandbox,
    ) -> Result<Vec<TamperFinding>, RunError> {
        let mut findings = Vec::new();
        if !directories::remove_unless_directory(sandbox, ".git").await? {
            return Ok(findings);
        }
        for (name, expected) in &self.expected {
            let is_expected = match read_if_present(sandbox, name).await {
                Ok(found) => found == *expected,
                // Something unreadable is in its place, which is never what the runner created.
                Err(RunError::Sandbox(
                    SandboxError::Escapes(_)
                    | SandboxError::NotRegular(_)
                    | SandboxError::TooLarge { .. }
                    | SandboxError::Io { .. },
                )) => false,
                Err(error) => return Err(error),
            };
            if is_expected {
                continue;
            }
            let path = repo_path(name)?;
            sandbox.delete(&path).await?;
            if let Some(bytes) = expected {
                sandbox.write(&path, bytes, WriteMode::Replace).await?;
            }
            findings.push(TamperFinding::new(name, "changed; restored"));
        }
        let hooks = repo_path(".git/hooks")?;
        let has_hooks = sandbox
            .list(&hooks)
            .await
            .is_ok_and(|entries| !entries.is_empty());
        if has_hooks {
            sandbox.delete(&hooks).await?;
            findings.push(TamperFinding::new(
                ".git/hooks",
                "hooks were added; removed",
            ));
        }
        Ok(findings)
    }
}

async fn read_if_present(sandbox: &dyn Sandbox, name: &str) -> Result<Option<Vec<u8>>, RunError> {
    match sandbox.read(&repo_path(name)?, MAX_BYTES).await {
        Ok(bytes) => Ok(Some(bytes)),
        Err(SandboxError::NotFound(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn host_name(name: &str) -> String {
    name.trim_start_matches('.').replace('/', "-")
}

/// Returns the path of a file of the repository in the sandbox.
pub(crate) fn repo_path(name: &str) -> Result<SandboxPath, RunError> {
    let path =
        WorkspacePath::parse(name).map_err(|error| SandboxError::Escapes(error.to_string()))?;
    Ok(SandboxPath::in_repo(&path))
}
