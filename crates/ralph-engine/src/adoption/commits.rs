//! Imports the commits of a lost run's sandbox with the checks of every import.

use std::collections::BTreeSet;

use ralph_core::id::CommitId;
use ralph_core::ports::Sandbox;
use ralph_core::secret::Redactor;

use crate::error::RunError;
use crate::git::{GitError, HostRepo, OwnFiles, SandboxGit};
use crate::rules;
use crate::store::RunDir;

/// The commits of a sandbox after their import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptedCommits {
    /// The last commit on the host.
    pub head: CommitId,
    /// The number of imported commits.
    pub commits: u64,
    /// Why the commits were not imported; their changes then count as uncommitted.
    pub refused: Option<String>,
}

/// Returns the newest of the sandbox's commits that is also in the history of the base branch. The
/// sandbox's list only selects among commits that the host already has.
pub async fn find_base(
    repo: &HostRepo,
    commits: &[CommitId],
) -> Result<Option<CommitId>, GitError> {
    let known: BTreeSet<String> = repo.start_history().await?.into_iter().collect();
    let mut commits = commits.iter();
    Ok(commits.find(|id| known.contains(id.as_str())).cloned())
}

/// Imports the sandbox's commits after `known` from its branch `from` to the run's branch `to`.
pub async fn import_commits(
    sandbox: &dyn Sandbox,
    (dir, repo): (&RunDir, &HostRepo),
    (from, to): (&str, &str),
    known: &CommitId,
    (redactor, own): (&Redactor, OwnFiles),
) -> Result<AdoptedCommits, RunError> {
    let unchanged = |refused: Option<String>| AdoptedCommits {
        head: known.clone(),
        commits: 0,
        refused,
    };
    let git = SandboxGit::new(sandbox);
    if git.branch_commit(from).await?.as_ref() == Some(known) {
        return Ok(unchanged(None));
    }
    let received = match git.bundle(from, known).await {
        Ok(bundle) => receive(&bundle, (dir, repo), from, known, (redactor, own)).await,
        Err(error) => Err(error),
    };
    match received {
        Ok(Ok((head, commits))) => {
            repo.set_branch(to, &head).await?;
            Ok(AdoptedCommits {
                head,
                commits,
                refused: None,
            })
        }
        Ok(Err(why)) => Ok(unchanged(Some(why))),
        // The agent may have damaged its repository; the files are still there.
        Err(RunError::Git(error)) => Ok(unchanged(Some(error.to_string()))),
        Err(error) => Err(error),
    }
}

async fn receive(
    bundle: &[u8],
    (dir, repo): (&RunDir, &HostRepo),
    branch: &str,
    known: &CommitId,
    (redactor, own): (&Redactor, OwnFiles),
) -> Result<Result<(CommitId, u64), String>, RunError> {
    let incoming = repo
        .receive(bundle, branch, dir.root().join("incoming"))
        .await?;
    let history = incoming.history(known, rules::MAX_SEARCHED).await?;
    if let Some(why) = rules::refuse_commits(redactor, history.as_ref(), known, own) {
        return Ok(Err(why));
    }
    let history = history.unwrap_or_default();
    if !history.continues(known) {
        let base = known.short();
        return Ok(Err(format!(
            "the branch does not continue {base} (non-fast-forward)"
        )));
    }
    let (head, commits) = (incoming.head().clone(), history.commits.len() as u64);
    repo.set_branch(branch, known).await?;
    incoming.accept(known).await?;
    Ok(Ok((head, commits)))
}
