//! Settles an iteration by its actual results: tampering, the state of git, the commits, the tests.

use ralph_core::diff::diff_size;
use ralph_core::event::{DeliveryEvent, IterationEvent};
use ralph_core::gutter::CodeChange;
use ralph_core::id::{CommitId, Digest};

use ralph_core::verdict::CheckResult;

use crate::durable;
use crate::error::RunError;
use crate::git::{Commit, GitError, WorkTree};
use crate::rules;
use crate::run::Run;

use super::circling::record_iteration_change;
use super::recover::is_repository_damage;
use super::recover::{inspect_after_damage, inspect_work_tree, record_dropped_commits};
use crate::actions::commit_marks;
use crate::check_results::run_check;
use crate::contract::PinnedTask;
use crate::contract_change::mark_verified_steps;
use crate::recorder::Recorder;
use crate::steps::IterationScratch;
use crate::workbench::Workbench;

/// The most bytes of a diff that are stored.
const MAX_DIFF: usize = 8 << 20;
/// The most commits in a prompt.
const MAX_LISTED_COMMITS: usize = 10;
/// The hint to the model after its commits were refused.
const COMMIT_ON_TOP_HINT: &str = "commit on top of it instead of rewriting history";

/// Inspects the workspace after the model's actions, imports its commits, and stores the diff.
pub(crate) async fn settle_iteration(
    recorder: &mut Recorder,
    bench: &mut Workbench,
    pinned: &PinnedTask,
    scratch: &mut IterationScratch,
) -> Result<(), RunError> {
    let findings = bench.inspect(&recorder.files).await?;
    recorder.record_tampering(findings)?;
    mark_verified_steps(recorder)?;
    let mut tree = inspect_work_tree(recorder, bench, pinned).await?;
    let start = recorder
        .state()
        .open
        .as_ref()
        .map_or_else(|| recorder.state().head.clone(), |open| open.head.clone());
    let diff = work_tree_diff(recorder, bench, pinned, &start, &mut tree).await?;
    let moved = tree
        .head
        .as_ref()
        .is_some_and(|head| *head != recorder.state().head);
    if !moved {
        record_dropped_commits(recorder, bench, &[]).await?;
    } else if !import_commits(recorder, bench, pinned).await? {
        tree = inspect_work_tree(recorder, bench, pinned).await?;
    }
    bench.view.diff_stat = work_tree_diff_stat(bench, &tree).await?;
    let uncommitted = (!tree.entries.is_empty()).then(|| Digest::compute(&diff));
    scratch.changed =
        scratch.resumed || recorder.state().head != start || uncommitted != bench.view.uncommitted;
    bench.view.uncommitted = uncommitted;
    let size = diff_size(&diff);
    scratch.lines_since_commit = size.added.saturating_add(size.removed);
    record_iteration_change(recorder, bench, scratch, &start, &tree).await?;
    let changed = scratch.changed;
    scratch.code = changed.then(|| CodeChange::from_diff(&diff, &recorder.state().window));
    let mut own = iteration_diff(bench, scratch, &tree, diff).await?;
    scratch.diff = diff_size(&own);
    own.truncate(MAX_DIFF);
    let clean = recorder.redactor.redact_bytes(&own);
    durable::write_unsynced(&recorder.open_iteration_file("git_diff.patch"), &clean)?;
    bench.view.tree = tree;
    Ok(())
}

/// Returns the diff of the iteration alone: `since_commit` also contains what earlier iterations
/// left uncommitted. If the files could not be recorded, that is the best one there is.
async fn iteration_diff(
    bench: &Workbench,
    scratch: &IterationScratch,
    tree: &WorkTree,
    since_commit: Vec<u8>,
) -> Result<Vec<u8>, RunError> {
    if !scratch.changed {
        return Ok(Vec::new());
    }
    let started_clean = !scratch.resumed && bench.view.tree.entries.is_empty();
    if started_clean || scratch.change.since.is_empty() {
        return Ok(since_commit);
    }
    match bench.git().diff_of_change(&scratch.change, tree).await {
        Err(RunError::Git(GitError::InSandbox { .. })) => Ok(since_commit),
        diff => diff,
    }
}

/// Inspects the workspace before the first iteration of this process.
pub(crate) async fn load_workspace_view(
    recorder: &mut Recorder,
    bench: &mut Workbench,
    pinned: &PinnedTask,
) -> Result<(), RunError> {
    let tree = inspect_work_tree(recorder, bench, pinned).await?;
    let state = recorder.state();
    let titles = bench
        .repo
        .commit_titles(&state.plan.base, &state.head, MAX_LISTED_COMMITS)
        .await?;
    bench.view.diff_stat = work_tree_diff_stat(bench, &tree).await?;
    bench.view.subjects = titles;
    bench.view.tree = tree;
    Ok(())
}

/// Returns the diff of the work tree. If git fails, the repository is restored first.
async fn work_tree_diff(
    recorder: &mut Recorder,
    bench: &mut Workbench,
    pinned: &PinnedTask,
    start: &CommitId,
    tree: &mut WorkTree,
) -> Result<Vec<u8>, RunError> {
    let git = bench.git();
    match git.diff(start, tree).await {
        Err(error) if is_repository_damage(&error) => {}
        diff => return diff,
    }
    *tree = inspect_after_damage(recorder, bench, pinned).await?;
    let git = bench.git();
    match git.diff(start, tree).await {
        // A prompt without a diff is better than no run.
        Err(error) if is_repository_damage(&error) => Ok(Vec::new()),
        diff => diff,
    }
}

async fn work_tree_diff_stat(bench: &Workbench, tree: &WorkTree) -> Result<String, RunError> {
    match bench.git().diff_stat(tree).await {
        Err(error) if is_repository_damage(&error) => Ok(String::new()),
        stat => stat,
    }
}

/// Imports the sandbox's commits into the host's repository. Returns whether they were accepted.
async fn import_commits(
    recorder: &mut Recorder,
    bench: &mut Workbench,
    pinned: &PinnedTask,
) -> Result<bool, RunError> {
    let branch = recorder.state().plan.branch.clone();
    let known = recorder.state().head.clone();
    let git = bench.git();
    let imported = match git.bundle(&branch, &known).await {
        Ok(bundle) => import_bundle(recorder, bench, pinned, &bundle, &known).await,
        Err(error) => Err(error),
    };
    let why = match imported {
        Ok(Err(why)) => why,
        Ok(Ok((head, history))) => {
            // Before `commits_imported`: `ralph audit` accepts that the commit of an action is
            // missing only if a refusal is the next of these two events.
            let ids: Vec<CommitId> = history.iter().map(|commit| commit.id.clone()).collect();
            record_dropped_commits(recorder, bench, &ids).await?;
            let titles: Vec<String> = history.iter().map(Commit::title).collect();
            let commits = titles.len() as u64;
            recorder.append(DeliveryEvent::CommitsImported { head, commits })?;
            bench.view.subjects = [titles, std::mem::take(&mut bench.view.subjects)].concat();
            bench.view.subjects.truncate(MAX_LISTED_COMMITS);
            return Ok(true);
        }
        Err(RunError::Git(
            error @ (GitError::Failed { .. }
            | GitError::TimedOut { .. }
            | GitError::InSandbox { .. }),
        )) => format!("{error}; {COMMIT_ON_TOP_HINT}"),
        Err(RunError::Git(error @ GitError::TooLarge { .. })) => {
            format!("{error}; leave it out of the commits, and out of their history")
        }
        Err(error) => return Err(error),
    };
    recorder.log_error(&format!(
        "the commits were not imported; the branch is back at {} and the files are unchanged: {why}",
        known.short()
    ))?;
    recorder.append(DeliveryEvent::ImportRefused { why })?;
    let git = bench.git();
    match git
        .reset_to_branch(&branch, &known, pinned.own_files())
        .await
    {
        // The next inspection finds the damage.
        Err(error) if is_repository_damage(&error) => {}
        reset => reset?,
    }
    Ok(false)
}

/// Imports commits from a bundle, unless they break a rule: then they never enter the repository.
/// Returns the last one and all of them, as read by the host.
async fn import_bundle(
    recorder: &Recorder,
    bench: &Workbench,
    pinned: &PinnedTask,
    bundle: &[u8],
    known: &CommitId,
) -> Result<Result<(CommitId, Vec<Commit>), String>, RunError> {
    let objects = recorder.dir.root().join("incoming");
    let branch = &recorder.state().plan.branch;
    let incoming = bench.repo.receive(bundle, branch, objects).await?;
    let history = incoming.history(known, rules::MAX_SEARCHED).await?;
    let (redactor, own) = (&recorder.redactor, pinned.own_files());
    if let Some(why) = rules::refuse_commits(redactor, history.as_ref(), known, own) {
        return Ok(Err(why));
    }
    let history = history.unwrap_or_default();
    let run = recorder.state().plan.run.as_str();
    if let Some(why) = rules::refuse_reserved_trailers(&history, run, &commit_marks(recorder)) {
        return Ok(Err(why));
    }
    if !history.continues(known) {
        return Ok(Err(format!(
            "the branch does not continue {} (non-fast-forward); {COMMIT_ON_TOP_HINT}",
            known.short()
        )));
    }
    let head = incoming.head().clone();
    incoming.accept(known).await?;
    Ok(Ok((head, history.commits)))
}

/// Runs the test command if the files changed and the model did not run it on them.
pub(crate) async fn run_tests_if_changed(run: &mut Run) -> Result<(), RunError> {
    let Some(command) = run.pinned.contract().test_command.clone() else {
        return Ok(());
    };
    let known = run.scratch.checks.get(&command).cloned();
    if known.is_none() && !run.scratch.changed {
        return Ok(());
    }
    let check = if let Some(check) = known {
        CheckResult {
            name: "test_command".into(),
            ..check
        }
    } else {
        let check = run_check(
            &mut run.recorder,
            &run.bench,
            &mut run.controls,
            &mut run.scratch,
            "test_command",
            &command,
        )
        .await?;
        // The tests execute code of the model, too.
        let findings = run.bench.inspect(&run.recorder.files).await?;
        run.recorder.record_tampering(findings)?;
        check
    };
    let verb = if check.is_green() { "green" } else { "red" };
    let count = check
        .tests
        .map_or_else(String::new, |tests| format!(", {tests}"));
    run.recorder
        .log_activity(&format!("tests are {verb}: {}{count}", check.ended))?;
    let iteration = run.recorder.state().iteration;
    run.scratch.tests = Some(check.clone());
    run.recorder
        .append(IterationEvent::TestsRun { iteration, check })?;
    Ok(())
}
