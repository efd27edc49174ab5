//! Confirms the number of tests behind a green verdict: by a listing of the runner, by the base
//! commit, and by the tests of the base commit on the new code.

use std::collections::BTreeSet;

use ralph_core::checks::{CountCheck, CountVerdict, Listing, fewer_tests};
use ralph_core::id::CommitId;
use ralph_core::surface::{self, Change, ChangedPath};
use ralph_core::verdict::{CheckResult, FindingKind, TestCount, VerifyFinding};

use super::verify::Report;
use crate::clean_room::{NamedCommand, RoomTree};
use crate::error::RunError;
use crate::run::Run;

impl Run {
    /// Compares the number of tests that each green check reports with a listing by its runner. Where
    /// the listing does not confirm the number, the same command at the base commit decides.
    pub(super) async fn confirm_counts(
        &mut self,
        tree: &RoomTree,
        report: &mut Report,
    ) -> Result<(), RunError> {
        let mut seen = BTreeSet::new();
        for check in report.checks.clone() {
            let CheckResult { command, tests, .. } = check;
            if !seen.insert(command.clone()) {
                continue;
            }
            let counted = match Listing::of(&command) {
                Some(_) if report.truncated.contains(&command) => {
                    CountCheck::of_truncated(&command)
                }
                Some(listing) => {
                    let listed = self.list_tests(tree, &listing).await?;
                    listing.compare(listed, tests)
                }
                None => CountCheck::without_runner(&command, tests),
            };
            if counted == CountCheck::Confirmed {
                continue;
            }
            let base = self.base_count(&command).await?;
            match counted.judge(&command, tests, base) {
                CountVerdict::Fine => {}
                CountVerdict::Qualified(finding) => report.add_findings([finding]),
                CountVerdict::Red(reason) => {
                    let same = report.checks.iter().filter(|c| c.command == command);
                    let boxes: Vec<String> = same.flat_map(|c| self.boxes_of(&c.name)).collect();
                    report.red_boxes.extend(boxes);
                    report.add_reason(reason);
                }
            }
        }
        Ok(())
    }

    /// Runs a check at the base commit and returns the number of tests that it reports there.
    async fn base_count(&mut self, command: &str) -> Result<Option<TestCount>, RunError> {
        let base = self.state().plan.base.clone();
        let commands = [named("base", command)];
        let checks = self.check_quietly(&RoomTree::of(&base), &commands).await?;
        Ok(checks.first().and_then(|check| check.tests))
    }

    /// Runs the test command with the tests of the base commit on the new code, if existing tests were
    /// changed. The result never makes a verdict red: tests may change for good reasons.
    pub(super) async fn try_old_tests(
        &mut self,
        head: &CommitId,
        report: &mut Report,
    ) -> Result<(), RunError> {
        let Some(command) = self.pinned.contract().test_command.clone() else {
            return Ok(());
        };
        let base = self.state().plan.base.clone();
        let is_old = |changed: &ChangedPath| {
            changed.change != Change::Added && surface::is_test(&changed.path)
        };
        let changed = self.repo.changed(&base, head).await?;
        let mut old = self.protected(&changed);
        old.extend(changed.into_iter().filter(is_old));
        if !old.iter().any(is_old) {
            return Ok(());
        }
        let tree = RoomTree::of(head).with_base_files(&base, &old);
        let checks = self
            .check_quietly(&tree, &[named("old_tests", &command)])
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
                report.add_findings([fewer_tests(&command, now, before, source)]);
            }
        }
        Ok(())
    }
}

fn named(name: &str, command: &str) -> NamedCommand {
    NamedCommand {
        name: name.to_owned(),
        command: command.to_owned(),
    }
}
