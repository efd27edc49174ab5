//! Changes to existing tests: found in the diff between base and branch, and refused or paused for
//! approval if the task asks for it.

use ralph_core::event::{Event, VerificationEvent};
use ralph_core::id::Digest;
use ralph_core::run::{PauseReason, RunStatus};
use ralph_core::surface::{self, ChangedPath, Surface, SurfaceFinding};
use ralph_core::task::OnTestChange;
use ralph_core::verdict::{FindingKind, VerifyFinding};

use super::publish::changed_surface;
use crate::contract::PinnedTask;
use crate::error::RunError;
use crate::recorder::Recorder;
use crate::workbench::Workbench;

/// The largest diff of tests that is examined.
const MAX_DIFF: u64 = 8 << 20;
/// How many changed tests a reason names.
const MAX_LISTED_TESTS: usize = 20;

/// Adds the changes of existing tests between the base and the head.
pub(super) async fn add_test_changes(
    recorder: &Recorder,
    bench: &Workbench,
    changed: &[ChangedPath],
    surface: &mut Surface,
) -> Result<(), RunError> {
    let paths = surface::existing_tests(changed);
    if paths.is_empty() {
        return Ok(());
    }
    let (base, head) = (&recorder.state().plan.base, &recorder.state().head);
    if let Some(diff) = bench
        .repo
        .diff_of_files(base, head, &paths, MAX_DIFF)
        .await?
    {
        let examined = surface::examine_test_diff(&String::from_utf8_lossy(&diff));
        surface.weakened_tests = examined.weakened;
        surface.rewritten_tests = examined.rewritten;
        surface.tests_digest = Some(Digest::compute(&diff));
        return Ok(());
    }
    let too_large = |path: &&str| SurfaceFinding {
        path: (*path).to_owned(),
        why: "test changed: the diff of all tests is too large to examine".to_owned(),
    };
    surface.weakened_tests = paths.iter().map(too_large).collect();
    surface.tests_digest = Some(Digest::compute(head.as_str().as_bytes()));
    Ok(())
}

/// Returns the changes to existing tests as findings about the verdict.
pub(super) async fn changed_test_findings(
    recorder: &Recorder,
    bench: &Workbench,
    pinned: &PinnedTask,
) -> Result<Vec<VerifyFinding>, RunError> {
    let changes = change_lines(&changed_surface(recorder, bench, pinned).await?).into_iter();
    let findings = changes.map(|text| VerifyFinding::new(FindingKind::WeakenedTest, text));
    Ok(findings.collect())
}

/// Returns why changes to tests prevent success, if they do.
pub(super) async fn refused_test_changes(
    recorder: &Recorder,
    bench: &Workbench,
    pinned: &PinnedTask,
) -> Result<Vec<String>, RunError> {
    match pinned.contract().verification.on_test_change {
        OnTestChange::Warn | OnTestChange::Pause => Ok(Vec::new()),
        OnTestChange::Refuse => {
            let changes = change_lines(&changed_surface(recorder, bench, pinned).await?);
            let refused = changes.into_iter().map(|change| {
                format!(
                    "{change} — the task does not allow changes to existing tests, restore them"
                )
            });
            Ok(refused.collect())
        }
    }
}

/// Returns why the run waits for the user's approval before it succeeds, if it does.
pub(super) async fn unapproved_test_changes(
    recorder: &Recorder,
    bench: &Workbench,
    pinned: &PinnedTask,
) -> Result<Option<PauseReason>, RunError> {
    if pinned.contract().verification.on_test_change != OnTestChange::Pause {
        return Ok(None);
    }
    let surface = changed_surface(recorder, bench, pinned).await?;
    let changes = change_lines(&surface);
    let Some(digest) = surface.tests_digest.filter(|_| !changes.is_empty()) else {
        return Ok(None);
    };
    let is_approved = recorder.state().approved_tests.as_ref() == Some(&digest);
    Ok((!is_approved).then_some(PauseReason::TestChanges { changes, digest }))
}

/// Returns the approval that resuming a run implies, if the run waited for one.
pub(crate) fn approved_by_resuming(status: &RunStatus) -> Option<Event> {
    if let RunStatus::Paused(PauseReason::TestChanges { digest, .. }) = status {
        let digest = digest.clone();
        return Some(Event::Verification(
            VerificationEvent::TestChangesApproved { digest },
        ));
    }
    None
}

/// Returns the changed tests as lines, the most important first.
fn change_lines(surface: &Surface) -> Vec<String> {
    let weakened = surface.weakened_tests.iter();
    let all: Vec<&SurfaceFinding> = weakened.chain(&surface.rewritten_tests).collect();
    let named = all.iter().take(MAX_LISTED_TESTS);
    let mut lines: Vec<String> = named
        .map(|finding| format!("`{}`: {}", finding.path, finding.why))
        .collect();
    let more = all.len().saturating_sub(MAX_LISTED_TESTS);
    if more > 0 {
        lines.push(format!("{more} more changed tests"));
    }
    lines
}
