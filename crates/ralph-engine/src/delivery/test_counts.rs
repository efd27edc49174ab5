//! Confirms the number of tests behind a green verdict: by a listing of the runner, by the base
//! commit, and by the tests of the base commit on the new code.

use std::collections::BTreeSet;

use ralph_core::checks::{CountCheck, CountVerdict, TestListing, fewer_tests_finding};
use ralph_core::id::CommitId;
use ralph_core::surface::{self, ChangedPath, PathChange};
use ralph_core::verdict::{CheckResult, FindingKind, TestCount, VerifyFinding};

use super::verify::CleanRoomReport;
use super::verify::{boxes_for_check, protected_changes};
use crate::clean_room::{NamedCommand, RoomTree};
use crate::clean_room::{check_for_comparison, list_tests};
use crate::controls::Controls;
use crate::error::RunError;
use crate::recorder::Recorder;
use crate::run::Run;
use crate::services::Services;
use crate::workbench::Workbench;

/// Compares the number of tests that each green check reports with a listing by its runner. If the
/// listing does not confirm the number, the same command at the base commit decides.
pub(super) async fn confirm_counts(
    run: &mut Run,
    tree: &RoomTree,
    report: &mut CleanRoomReport,
) -> Result<(), RunError> {
    let mut seen = BTreeSet::new();
    for check in report.checks.clone() {
        let CheckResult { command, tests, .. } = check;
        if !seen.insert(command.clone()) {
            continue;
        }
        let counted = match TestListing::parse(&command) {
            Some(_) if report.truncated.contains(&command) => {
                CountCheck::for_truncated_output(&command)
            }
            Some(listing) => {
                let listed = list_tests(
                    &mut run.recorder,
                    &run.bench,
                    &mut run.controls,
                    &run.services,
                    tree,
                    &listing,
                )
                .await?;
                listing.compare(listed, tests)
            }
            None => CountCheck::for_unknown_runner(&command, tests),
        };
        if counted == CountCheck::Confirmed {
            continue;
        }
        let base = base_count(
            &mut run.recorder,
            &run.bench,
            &mut run.controls,
            &run.services,
            &command,
        )
        .await?;
        match counted.judge(&command, tests, base) {
            CountVerdict::Fine => {}
            CountVerdict::Qualified(finding) => report.add_findings([finding]),
            CountVerdict::Red(reason) => {
                let same = report.checks.iter().filter(|c| c.command == command);
                let boxes: Vec<String> = same
                    .flat_map(|c| boxes_for_check(&run.pinned, &c.name))
                    .collect();
                report.red_boxes.extend(boxes);
                report.add_reason(reason);
            }
        }
    }
    Ok(())
}

/// Runs a check at the base commit and returns the number of tests that it reports there.
async fn base_count(
    recorder: &mut Recorder,
    bench: &Workbench,
    controls: &mut Controls,
    services: &Services,
    command: &str,
) -> Result<Option<TestCount>, RunError> {
    let base = recorder.state().plan.base.clone();
    let commands = [named_command("base", command)];
    let checks = check_for_comparison(
        recorder,
        bench,
        controls,
        services,
        &RoomTree::for_commit(&base),
        &commands,
    )
    .await?;
    Ok(checks.first().and_then(|check| check.tests))
}

/// Runs the test command with the tests of the base commit on the new code, if existing tests were
/// changed. The result never turns a verdict red: tests may change for good reasons.
pub(super) async fn run_base_tests(
    run: &mut Run,
    head: &CommitId,
    report: &mut CleanRoomReport,
) -> Result<(), RunError> {
    let Some(command) = run.pinned.contract().test_command.clone() else {
        return Ok(());
    };
    let base = run.recorder.state().plan.base.clone();
    let is_old = |changed: &ChangedPath| {
        changed.change != PathChange::Added && surface::is_test(&changed.path)
    };
    let changed = run.bench.repo.changed_paths(&base, head).await?;
    let mut old = protected_changes(&run.pinned, &changed);
    old.extend(changed.into_iter().filter(is_old));
    if !old.iter().any(is_old) {
        return Ok(());
    }
    let tree = RoomTree::for_commit(head).with_base_files(&base, &old);
    let checks = check_for_comparison(
        &mut run.recorder,
        &run.bench,
        &mut run.controls,
        &run.services,
        &tree,
        &[named_command("old_tests", &command)],
    )
    .await?;
    for check in checks {
        let finding = if check.is_green() {
            let text = "the tests of the base commit pass on the new code";
            VerifyFinding::new(FindingKind::OldTestsPass, text)
        } else {
            let failed = check.tests.map(|tests| format!(", {tests}"));
            let text = format!(
                "the tests of the base commit fail on the new code: `{command}`: {}{}",
                check.ended,
                failed.unwrap_or_default()
            );
            VerifyFinding::new(FindingKind::OldTestsFail, text)
        };
        report.add_findings([finding]);
        let now = report.checks.iter().find(|now| now.command == command);
        let now = now.and_then(|now| now.tests).map(TestCount::ran);
        if let (Some(now), Some(before)) = (now, check.tests.map(TestCount::ran))
            && before > now
        {
            let source = "the tests of the base commit have";
            report.add_findings([fewer_tests_finding(&command, now, before, source)]);
        }
    }
    Ok(())
}

fn named_command(name: &str, command: &str) -> NamedCommand {
    NamedCommand {
        name: name.to_owned(),
        command: command.to_owned(),
    }
}
