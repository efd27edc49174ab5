//! Finds runs whose directory is gone: by their sandboxes, and by the snapshots in the repository of the
//! working directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use ralph_core::id::{CommitId, RunId};
use ralph_core::ports::ProviderProblem;
use ralph_engine::git::HostGit;
use serde_json::Value;

use super::summary::{RunSummary, TokenTotals};
use crate::app::App;
use crate::error::AppError;
use crate::prune::{OrphanedSandbox, OrphanedSandboxes};

/// The status of a run whose directory is gone.
pub const ORPHANED: &str = "orphaned";
/// The most snapshots of a task that are searched for lost runs.
const MAX_SNAPSHOTS: &str = "--max-count=200";
/// The subject of a snapshot before the run's id.
const SUBJECT: &str = "State of run ";

/// A run whose directory is gone.
#[derive(Debug, Clone)]
pub struct OrphanedRun {
    pub run: RunId,
    pub sandbox: Option<OrphanedSandbox>,
    pub saved: Option<SavedRun>,
}

/// The newest snapshot of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedRun {
    /// The repository with the snapshot.
    pub repo: PathBuf,
    pub reference: String,
    pub commit: CommitId,
    pub at: Option<Timestamp>,
    /// The status in one word; empty if the snapshot does not name it.
    pub status: String,
}

/// The runs whose directory is gone, oldest first.
pub struct OrphanedRuns {
    pub runs: Vec<OrphanedRun>,
    /// Why the containers could not be listed.
    pub(crate) docker_problem: Option<ProviderProblem>,
}

impl OrphanedRuns {
    /// Finds all of them.
    pub async fn find(app: &App) -> Result<Self, AppError> {
        let providers = app.providers()?;
        let sandboxes = OrphanedSandboxes::find(app, &providers).await;
        let mut runs: BTreeMap<String, OrphanedRun> = BTreeMap::new();
        for sandbox in sandboxes.found {
            let run = sandbox.run.clone();
            let orphan = OrphanedRun {
                run: run.clone(),
                sandbox: Some(sandbox),
                saved: None,
            };
            runs.entry(run.to_string()).or_insert(orphan);
        }
        if let Some(repo) = app.repository() {
            for (run, saved) in saved_runs(&repo, &app.git_read_only()).await {
                if providers.state.run(&run).journal().exists() {
                    continue;
                }
                let orphan = runs.entry(run.to_string()).or_insert(OrphanedRun {
                    run,
                    sandbox: None,
                    saved: None,
                });
                orphan.saved = Some(saved);
            }
        }
        Ok(Self {
            runs: runs.into_values().collect(),
            docker_problem: sandboxes.docker_problem,
        })
    }

    /// Returns why the containers could not be listed.
    pub fn docker_problem(&self) -> Option<&str> {
        self.docker_problem
            .as_ref()
            .map(|problem| problem.what.as_str())
    }

    /// Returns the runs that `ralph runs` lists: a finished run without a sandbox has nothing to
    /// rescue.
    pub fn listed(&self) -> impl DoubleEndedIterator<Item = &OrphanedRun> {
        self.runs.iter().filter(|orphan| {
            let saved = orphan.saved.as_ref();
            orphan.sandbox.is_some() || saved.is_some_and(|saved| !saved.has_ended())
        })
    }

    /// Finds one by its id, a unique prefix of it, or the id of its task.
    pub fn get(&self, query: &str) -> Option<&OrphanedRun> {
        let exact = self.runs.iter().find(|orphan| orphan.run.as_str() == query);
        let of_task = || {
            let has_id = |orphan: &&OrphanedRun| orphan.task_id() == Some(query);
            self.runs.iter().rev().find(has_id)
        };
        let by_prefix = || {
            let starts = |orphan: &&OrphanedRun| orphan.run.as_str().starts_with(query);
            let mut matches = self.runs.iter().filter(starts);
            matches.next().filter(|_| matches.next().is_none())
        };
        exact.or_else(of_task).or_else(by_prefix)
    }
}

/// Removes the sandbox of a lost run with this id, which the user asked for: it may contain the last copy of the
/// run's work. Returns the name of the sandbox.
pub async fn remove_orphan(run: &str, app: &App) -> Result<String, AppError> {
    let orphans = OrphanedRuns::find(app).await?;
    let found = orphans
        .runs
        .iter()
        .find(|orphan| orphan.run.as_str() == run);
    let Some(sandbox) = found.and_then(|orphan| orphan.sandbox.as_ref()) else {
        return Err(AppError::runtime(
            format!("there is no orphaned run `{run}`"),
            "no sandbox without a run directory has this id",
            "list them with `ralph prune-sandboxes --dry-run`",
        ));
    };
    let removed = sandbox.remove(&app.providers()?).await;
    removed.map_err(|problem| {
        let what = format!("cannot remove the sandbox `{}`", sandbox.id);
        AppError::runtime(what, problem.what, problem.fix)
    })?;
    Ok(sandbox.id.to_string())
}

impl SavedRun {
    fn has_ended(&self) -> bool {
        matches!(self.status.as_str(), "succeeded" | "failed" | "stopped")
    }
}

impl OrphanedRun {
    /// Returns the id of its task, if a snapshot names it.
    pub fn task_id(&self) -> Option<&str> {
        let saved = self.saved.as_ref()?;
        saved.reference.strip_prefix("refs/ralph/")
    }

    /// Describes the remaining copies and the command that rebuilds the run.
    pub fn describe(&self) -> String {
        let sandbox = self.sandbox.as_ref().map(|sandbox| {
            let (provider, id) = (sandbox.provider, &sandbox.id);
            format!("{provider} sandbox `{id}`")
        });
        let saved = self.saved.as_ref().map(|saved| {
            let commit = saved.commit.short();
            format!("{} at commit {commit}", saved.reference)
        });
        let copies: Vec<String> = sandbox.into_iter().chain(saved).collect();
        let (copies, run) = (copies.join(" and "), &self.run);
        format!("its directory is gone; a copy is in {copies} — `ralph adopt {run}` rebuilds it")
    }

    /// Summarizes the run like those with a directory.
    pub fn summary(&self, now: Timestamp) -> RunSummary {
        let created = self.sandbox.as_ref().and_then(|sandbox| sandbox.age);
        let created = created
            .into_iter()
            .flat_map(|age| now.checked_sub(age))
            .next();
        let saved_at = self.saved.as_ref().and_then(|saved| saved.at);
        RunSummary {
            id: self.run.clone(),
            task_id: self.task_id().map(str::to_owned),
            status: ORPHANED,
            reason: Some(self.describe()),
            engine: None,
            sandbox: self.sandbox.as_ref().map(|s| s.provider.to_owned()),
            iteration: 0,
            loop_score: None,
            cost_usd: 0.0,
            tokens: TokenTotals::default(),
            branch: None,
            head: None,
            pr: None,
            started_at: None,
            updated_at: saved_at.or(created),
            origin: None,
            queue_position: None,
        }
    }
}

/// Returns the newest snapshot of each run. A repository that git cannot read has none.
async fn saved_runs(repo: &Path, git: &HostGit) -> Vec<(RunId, SavedRun)> {
    let args = ["for-each-ref", "--format=%(refname)", "refs/ralph/"];
    let references = match git.run_as_user(repo, &args).await {
        Ok(references) => references,
        Err(error) => {
            tracing::warn!(%error, "cannot list the snapshots of runs");
            return Vec::new();
        }
    };
    let mut runs: Vec<(RunId, SavedRun)> = Vec::new();
    for reference in references.lines() {
        let args = ["log", MAX_SNAPSHOTS, "--format=%H %ct %s", reference, "--"];
        let log = git.run_as_user(repo, &args).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read the snapshots in `{reference}`");
            String::new()
        });
        for line in log.lines() {
            let Some((run, commit, at)) = parse_snapshot(line) else {
                continue;
            };
            if runs.iter().any(|(known, _)| *known == run) {
                continue;
            }
            let status = saved_status(repo, &commit, git).await;
            runs.push((
                run,
                SavedRun {
                    repo: repo.to_owned(),
                    reference: reference.to_owned(),
                    commit,
                    at,
                    status,
                },
            ));
        }
    }
    runs
}

/// Parses `commit seconds subject`.
fn parse_snapshot(line: &str) -> Option<(RunId, CommitId, Option<Timestamp>)> {
    let mut fields = line.splitn(3, ' ');
    let commit = CommitId::parse(fields.next()?)?;
    let seconds = fields.next()?.parse::<i64>().into_iter();
    let at = seconds.flat_map(Timestamp::from_second).next();
    let run = RunId::parse(fields.next()?.strip_prefix(SUBJECT)?)?;
    Some((run, commit, at))
}

async fn saved_status(repo: &Path, commit: &CommitId, git: &HostGit) -> String {
    let manifest = format!("{commit}:snapshot.json");
    match git
        .run_as_user(repo, &["cat-file", "blob", &manifest])
        .await
    {
        Ok(text) => {
            let manifest: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
            manifest["status"].as_str().unwrap_or_default().to_owned()
        }
        // Snapshots of older versions have none.
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_recognized_by_its_subject() {
        let id = "a".repeat(40);
        let parsed = parse_snapshot(&format!("{id} 1700000000 State of run 260301-100000-0001"));
        let (run, commit, at) = parsed.unwrap();
        assert_eq!(run.as_str(), "260301-100000-0001");
        assert_eq!(commit.as_str(), id);
        assert_eq!(at.unwrap().as_second(), 1_700_000_000);
        for line in [
            "",
            "x 1 State of run 260301-100000-0001",
            &format!("{id} 1 Another commit"),
            &format!("{id} 1 State of run ../../etc"),
        ] {
            assert_eq!(parse_snapshot(line), None, "{line}");
        }
    }
}
