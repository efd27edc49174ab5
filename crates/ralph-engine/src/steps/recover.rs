//! Repairs a repository that a command has damaged. The host has every accepted commit, so no
//! damage inside the sandbox may end a run.

use ralph_core::event::{ActionResult, DeliveryEvent};
use ralph_core::id::CommitId;
use ralph_core::path::SandboxPath;

use crate::contract::PinnedTask;
use crate::error::RunError;
use crate::git::{GitError, MAX_COMMIT_BYTES, WorkTree};
use crate::prepare;
use crate::recorder::Recorder;
use crate::workbench::Workbench;
use crate::workspace::TamperFinding;

/// The most large files in a report to the model.
const MAX_LISTED_FILES: usize = 5;

/// Returns the state of the work tree. A damaged repository is restored first, together with the
/// files if git cannot read them.
pub(crate) async fn inspect_work_tree(
    recorder: &mut Recorder,
    bench: &mut Workbench,
    pinned: &PinnedTask,
) -> Result<WorkTree, RunError> {
    let tree = match inspect_work_tree_once(recorder, bench, pinned).await {
        Err(error) if is_repository_damage(&error) => {
            inspect_after_damage(recorder, bench, pinned).await?
        }
        inspected => inspected?,
    };
    report_large_files(recorder, bench, &tree)?;
    Ok(tree)
}

pub(super) async fn inspect_after_damage(
    recorder: &mut Recorder,
    bench: &mut Workbench,
    pinned: &PinnedTask,
) -> Result<WorkTree, RunError> {
    let rebuilt = rebuild_repository(recorder, bench, pinned).await;
    let inspected = match rebuilt {
        Ok(()) => inspect_work_tree_once(recorder, bench, pinned).await,
        Err(error) => Err(error),
    };
    match inspected {
        Err(error) if is_repository_damage(&error) => {}
        inspected => return inspected,
    }
    // One of the files prevents git from working.
    bench.sandbox.delete(&SandboxPath::repo()).await?;
    rebuild_repository(recorder, bench, pinned).await?;
    let findings = bench.inspect(&recorder.files).await?;
    recorder.record_tampering(findings)?;
    inspect_work_tree_once(recorder, bench, pinned).await
}

/// Returns the state of the work tree, after switching the repository back to its branch if
/// necessary.
async fn inspect_work_tree_once(
    recorder: &mut Recorder,
    bench: &Workbench,
    pinned: &PinnedTask,
) -> Result<WorkTree, RunError> {
    let branch = recorder.state().plan.branch.clone();
    let mut tree = bench.git().status().await?;
    recorder.record_tampering(std::mem::take(&mut tree.survey.findings))?;
    if tree.branch.as_deref() == Some(&branch) && tree.head.is_some() {
        return Ok(tree);
    }
    let target = latest_descendant(recorder, bench, tree.head).await?;
    let git = bench.git();
    git.reset_to_branch(&branch, &target, pinned.own_files())
        .await?;
    let tree = git.status().await?;
    let finding = "another branch was checked out; switched back";
    recorder.record_tampering(vec![TamperFinding::new(".git", finding)])?;
    Ok(tree)
}

/// Replaces the repository in the sandbox by a fresh one at the last commit that the host has.
/// Existing files are kept; if none is left, those of the commit are restored.
async fn rebuild_repository(
    recorder: &mut Recorder,
    bench: &Workbench,
    pinned: &PinnedTask,
) -> Result<(), RunError> {
    let (branch, head) = (
        recorder.state().plan.branch.clone(),
        recorder.state().head.clone(),
    );
    let plan = &recorder.state().plan;
    prepare::install_branch(&*bench.sandbox, &recorder.dir, &bench.repo, plan).await?;
    let git = bench.git();
    git.reset_to_branch(&branch, &head, pinned.own_files())
        .await?;
    let finding = if git.restore_if_empty().await? {
        "the repository and its files were removed; restored to the last commit"
    } else {
        "the repository was damaged; restored, files kept"
    };
    recorder.record_tampering(vec![TamperFinding::new(".git", finding)])
}

/// Returns the latest commit: commits on another branch count if they are descendants of the run's.
async fn latest_descendant(
    recorder: &Recorder,
    bench: &Workbench,
    found: Option<CommitId>,
) -> Result<CommitId, RunError> {
    let known = recorder.state().head.clone();
    let git = bench.git();
    Ok(match found {
        Some(found) if git.is_descendant(found.as_str(), &known).await? => found,
        _ => known,
    })
}

/// Reports files that are too large for git to the model, whenever the list of them changes.
fn report_large_files(
    recorder: &mut Recorder,
    bench: &Workbench,
    tree: &WorkTree,
) -> Result<(), RunError> {
    let large = &tree.survey.large;
    if large.is_empty() || *large == bench.view.tree.survey.large {
        return Ok(());
    }
    recorder.log_error(&describe_large_files(large))
}

/// Records commits of an iteration that are not among the imported ones: a command removed them
/// from the branch, or they were lost with a damaged repository.
pub(super) async fn record_dropped_commits(
    recorder: &mut Recorder,
    bench: &Workbench,
    imported: &[CommitId],
) -> Result<(), RunError> {
    let what = "is no longer on the branch; the changes in its files count as uncommitted";
    record_lost_commits(recorder, bench, imported, what).await
}

/// Records commits of the open iteration that were not imported when the sandbox was lost.
pub(crate) async fn record_commits_of_lost_sandbox(
    recorder: &mut Recorder,
    bench: &Workbench,
) -> Result<(), RunError> {
    record_lost_commits(recorder, bench, &[], "is lost with its sandbox").await
}

async fn record_lost_commits(
    recorder: &mut Recorder,
    bench: &Workbench,
    imported: &[CommitId],
    what: &str,
) -> Result<(), RunError> {
    let created: Vec<CommitId> = recorder
        .state()
        .open
        .iter()
        .flat_map(|open| open.results.values())
        .filter_map(commit_from_result)
        .collect();
    for commit in created {
        if imported.contains(&commit) || bench.repo.has_commit(&commit).await {
            continue;
        }
        let why = format!("commit {} {what}", commit.short());
        recorder.log_error(&why)?;
        recorder.append(DeliveryEvent::ImportRefused { why })?;
    }
    Ok(())
}

/// Returns the message that files are too large for a commit.
pub(crate) fn describe_large_files(large: &[String]) -> String {
    let named: Vec<String> = large
        .iter()
        .take(MAX_LISTED_FILES)
        .map(|path| format!("`{path}`"))
        .collect();
    let more = match large.len().saturating_sub(MAX_LISTED_FILES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "not committed: larger than {} MiB, the limit of a commit: {}{more}; ignore or delete files that are not part of the work",
        MAX_COMMIT_BYTES >> 20,
        named.join(", ")
    )
}

/// Returns whether git failed in the sandbox, which a fresh repository repairs.
pub(crate) fn is_repository_damage(error: &RunError) -> bool {
    matches!(
        error,
        RunError::Git(GitError::InSandbox { .. } | GitError::Unexpected { .. })
    )
}

/// Returns the commit that an action created.
fn commit_from_result(result: &ActionResult) -> Option<CommitId> {
    let ActionResult::Done { detail } = result else {
        return None;
    };
    let mut parts = detail
        .strip_prefix("commit ")?
        .split(|letter: char| !letter.is_ascii_hexdigit());
    CommitId::parse(parts.next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_commit_has_either_length() {
        for length in [40, 64] {
            let id = "a".repeat(length);
            for rest in ["", "; not committed: x", " was created before the restart"] {
                let detail = format!("commit {id}{rest}");
                let found = commit_from_result(&ActionResult::Done { detail });
                assert_eq!(found, CommitId::parse(&id), "{length} {rest}");
            }
        }
        let detail = "wrote 3 lines".to_owned();
        assert_eq!(commit_from_result(&ActionResult::Done { detail }), None);
    }
}
