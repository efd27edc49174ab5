//! Commits: exactly one for each commit action, even after a crash.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use ralph_core::action::{RunnerTrailer, clean_message, rules};
use ralph_core::id::CommitId;
use ralph_core::path::WorkspacePath;
use ralph_core::publish::neutral::neutralize_commit;

use super::perform::ActionEffect;
use crate::contract::PinnedTask;
use crate::controls::Controls;
use crate::error::RunError;
use crate::git::{CommitExclusions, CommitOutcome};
use crate::recorder::Recorder;
use crate::run::{Run, attend};
use crate::steps::inspect_work_tree;
use crate::steps::{describe_large_files, is_repository_damage};
use crate::workbench::Workbench;

/// The most nested repositories that a result lists.
const MAX_LISTED_REPOSITORIES: usize = 5;

pub(super) async fn commit_action(
    run: &mut Run,
    index: usize,
    message: &str,
    paths: &[WorkspacePath],
) -> Result<ActionEffect, RunError> {
    if let Some(why) = paths.iter().find_map(rules::refuse_commit) {
        return Ok(ActionEffect::refused(why));
    }
    let message = format!(
        "{}\n\nRalph-Run: {}\n{}\n",
        clean_message(&publishable_message(run, message)),
        run.recorder.state().plan.run,
        action_trailer(&run.recorder, index)
    );
    let Run {
        recorder,
        bench,
        controls,
        pinned,
        ..
    } = run;
    let findings = bench.workspace.guard_git(&*bench.sandbox).await?;
    recorder.record_tampering(findings)?;
    let mut outcome = try_commit(recorder, bench, controls, pinned, &message, paths).await;
    if outcome.as_ref().is_err_and(is_repository_damage) {
        // The inspection restores the repository.
        inspect_work_tree(recorder, bench, pinned).await?;
        outcome = try_commit(recorder, bench, controls, pinned, &message, paths).await;
    }
    Ok(match outcome {
        Ok(CommitOutcome::Created(commit, left_out)) => {
            ActionEffect::done(describe_commit(&commit, &left_out))
        }
        Ok(CommitOutcome::Nothing(large)) if large.is_empty() => {
            ActionEffect::done("nothing to commit")
        }
        Ok(CommitOutcome::Nothing(large)) => ActionEffect::failed(describe_large_files(&large)),
        Ok(CommitOutcome::Rejected(why)) => ActionEffect::failed(why),
        Err(RunError::Git(error)) => ActionEffect::failed(error.to_string()),
        Err(error) => return Err(error),
    })
}

/// Returns the message of a commit, without closing keywords for other issues if the source host has
/// issues.
fn publishable_message<'a>(run: &Run, message: &'a str) -> Cow<'a, str> {
    match run.services.scm.source_host() {
        Some(_) => neutralize_commit(message, run.recorder.state().plan.issue_number()).into(),
        None => message.into(),
    }
}

async fn try_commit(
    recorder: &mut Recorder,
    bench: &Workbench,
    controls: &mut Controls,
    pinned: &PinnedTask,
    message: &str,
    paths: &[WorkspacePath],
) -> Result<CommitOutcome, RunError> {
    let own_files = pinned.own_files();
    let git = bench.git();
    let committing = git.commit(message, paths, own_files);
    attend(&mut recorder.journal, controls, committing).await?
}

/// Returns the trailer that identifies the commit of an action; it is unique in the run.
fn action_trailer(recorder: &Recorder, index: usize) -> String {
    RunnerTrailer::Action(action_mark(recorder, index)).to_string()
}

fn action_mark(recorder: &Recorder, index: usize) -> String {
    let state = recorder.state();
    format!("{}/{}/{index}", state.plan.run, state.iteration)
}

/// Returns the values of the action trailers of all commits that the actions of the open iteration
/// created.
pub(crate) fn commit_marks(recorder: &Recorder) -> BTreeSet<String> {
    let open = recorder.state().open.iter();
    let indices = open.flat_map(|open| open.commits.iter());
    indices.map(|index| action_mark(recorder, *index)).collect()
}

/// Returns the effect of a commit action that an earlier process completed but did not record.
pub(super) async fn commit_before_restart(
    recorder: &Recorder,
    bench: &Workbench,
    index: usize,
) -> Result<Option<ActionEffect>, RunError> {
    let existing = bench
        .git()
        .head_with_trailer(&action_trailer(recorder, index))
        .await?;
    Ok(existing.map(|commit| {
        ActionEffect::done(format!("commit {commit} was created before the restart"))
    }))
}

/// Returns the result of a commit action, with everything that is not part of the commit.
fn describe_commit(commit: &CommitId, left_out: &CommitExclusions) -> String {
    let mut detail = format!("commit {commit}");
    if !left_out.large.is_empty() {
        detail.push_str("; ");
        detail.push_str(&describe_large_files(&left_out.large));
    }
    for path in left_out.nested.iter().take(MAX_LISTED_REPOSITORIES) {
        let _ = write!(
            detail,
            "; the files in `{path}` are not committed: it is a repository of its own; remove its `.git` if they are part of the work"
        );
    }
    detail
}
