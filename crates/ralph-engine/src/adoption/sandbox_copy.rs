//! Reads the files of a run from its sandbox. All of them are claims of the agent.

use ralph_core::event::{ClaimedSpending, IterationMetrics};
use ralph_core::id::CommitId;
use ralph_core::ports::{Sandbox, SandboxError};
use ralph_core::secret::Redactor;

use crate::durable::{self, StoreError};
use crate::error::RunError;
use crate::git::SandboxGit;
use crate::store::RunDir;
use crate::workspace::{FILE_OWNERS, repo_path};

/// The largest task file, as for a run.
const MAX_TASK: u64 = 512 << 10;
/// The largest other file that is copied.
const MAX_FILE: u64 = 1 << 20;
/// The most iterations whose files are copied, the newest first.
const MAX_ITERATIONS: usize = 200;
/// The most commits in which the base is searched.
const MAX_COMMITS: usize = 10_000;

/// The files and the history of a run, as its sandbox has them.
#[derive(Debug)]
pub struct SandboxCopy {
    /// The text of `ralph_task.md`.
    pub task: Vec<u8>,
    /// The checked-out branch, if there is one.
    pub branch: Option<String>,
    /// The commits of the checked-out history, newest first.
    pub commits: Vec<CommitId>,
    /// The spending according to the metrics of finished iterations.
    pub claimed: ClaimedSpending,
    /// Files by their path below the run's directory.
    files: Vec<(String, Vec<u8>)>,
}

impl SandboxCopy {
    /// Reads the copy. Only a missing or unreadable task file is an error.
    pub async fn read(sandbox: &dyn Sandbox) -> Result<Self, RunError> {
        let task = sandbox.read(&repo_path("ralph_task.md")?, MAX_TASK).await?;
        let mut files = Vec::new();
        for (name, _) in FILE_OWNERS {
            let found = read_if_usable(sandbox, &format!(".ralph/{name}")).await?;
            files.extend(found.map(|bytes| (format!("files/{name}"), bytes)));
        }
        let mut claimed = ClaimedSpending::default();
        for number in iterations(sandbox).await? {
            claimed.iterations = claimed.iterations.max(number);
            for name in RunDir::ARTIFACTS {
                let path = format!("iterations/{number}/{name}");
                let Some(bytes) = read_if_usable(sandbox, &format!(".ralph/{path}")).await? else {
                    continue;
                };
                if name == "metrics.json" {
                    add_metrics(&mut claimed, &bytes);
                }
                files.push((format!("adopted/{path}"), bytes));
            }
        }
        let git = SandboxGit::new(sandbox);
        Ok(Self {
            branch: git.checked_out_branch().await?,
            commits: git.commits(MAX_COMMITS).await?,
            task,
            claimed,
            files,
        })
    }

    /// Writes the progress file and the files of iterations after `last` into the directory of a run
    /// that has a snapshot.
    pub fn store_newer(
        &self,
        last: u32,
        dir: &RunDir,
        redactor: &Redactor,
    ) -> Result<(), StoreError> {
        let is_newer = |path: &str| {
            let number = path.strip_prefix("adopted/iterations/");
            let number = number.and_then(|rest| rest.split('/').next());
            number.is_some_and(|text| text.parse::<u32>().is_ok_and(|number| number > last))
        };
        let newer = self.files.iter();
        let newer = newer.filter(|(path, _)| path == "files/progress.md" || is_newer(path));
        write_files(newer, dir, redactor)
    }

    /// Writes the files into a run's directory, redacted. Those of finished iterations are stored
    /// apart, because no journal vouches for them.
    pub fn store(&self, dir: &RunDir, redactor: &Redactor) -> Result<(), StoreError> {
        write_files(self.files.iter(), dir, redactor)
    }
}

fn write_files<'a>(
    files: impl Iterator<Item = &'a (String, Vec<u8>)>,
    dir: &RunDir,
    redactor: &Redactor,
) -> Result<(), StoreError> {
    for (path, bytes) in files {
        let path = dir.root().join(path);
        path.parent().map_or(Ok(()), durable::create_dir)?;
        durable::write(&path, &redactor.redact_bytes(bytes))?;
    }
    Ok(())
}

fn add_metrics(claimed: &mut ClaimedSpending, bytes: &[u8]) {
    match serde_json::from_slice::<IterationMetrics>(bytes) {
        Ok(metrics) => {
            claimed.duration_ms = claimed.duration_ms.saturating_add(metrics.duration_ms);
            claimed.usage.add(metrics.usage);
            claimed.cost_usd += metrics.cost_usd;
        }
        Err(error) => tracing::warn!(%error, "the metrics of an iteration cannot be read"),
    }
}

/// Returns the numbers of the newest finished iterations.
async fn iterations(sandbox: &dyn Sandbox) -> Result<Vec<u32>, RunError> {
    let entries = match sandbox.list(&repo_path(".ralph/iterations")?).await {
        Ok(entries) => entries,
        Err(error) => return skip_unusable(error).map(|()| Vec::new()),
    };
    let numbers = entries.iter().flat_map(|entry| entry.name.parse::<u32>());
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable_by_key(|number| std::cmp::Reverse(*number));
    numbers.truncate(MAX_ITERATIONS);
    Ok(numbers)
}

async fn read_if_usable(sandbox: &dyn Sandbox, path: &str) -> Result<Option<Vec<u8>>, RunError> {
    match sandbox.read(&repo_path(path)?, MAX_FILE).await {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) => skip_unusable(error).map(|()| None),
    }
}

/// Accepts the error of a file that the agent removed or replaced.
fn skip_unusable(error: SandboxError) -> Result<(), RunError> {
    match error {
        SandboxError::NotFound(_)
        | SandboxError::NotRegular(_)
        | SandboxError::Escapes(_)
        | SandboxError::TooLarge { .. }
        | SandboxError::Io { .. } => {
            tracing::warn!(%error, "a file of the sandbox is left out");
            Ok(())
        }
        SandboxError::Gone(_)
        | SandboxError::Spawn { .. }
        | SandboxError::Interrupted { .. }
        | SandboxError::Provider(_) => Err(error.into()),
    }
}
