//! Confirms the number of tests behind a green verdict: by a listing of the runner, by the base
//! commit, and by the tests of the base commit on the new code.

use std::collections::BTreeSet;

use ralph_core::checks::{CountCheck, Listing};
use ralph_core::id::CommitId;
use ralph_core::surface::{self, Change, ChangedPath};
use ralph_core::verdict::{CheckResult, FindingKind, TestCount, VerifyFinding};

use super::verify::Report;
use crate::clean_room::{NamedCommand, RoomTree};
use crate::error::RunError;
use crate::run::Run;

impl Run {
    /// Compares the number of tests that each green check reports with a listing by its runner. Where
    /// there is none, the number at the base commit is the least that is expected.
    pub(super) async fn confirm_counts(
        &mut self,
        tree: &RoomTree,
        report: &mut Report,
    ) -> Result<(), RunError> {
        let mut seen = BTreeSet::new();
        for check in report.checks.clone() {
            if !seen.insert(check.command.clone()) {
                continue;
            }
            let counted = match Listing::of(&check.command) {
                Some(listing) => {
                    let listed = self.list_tests(tree, &listing).await?;
                    listing.compare(listed, check.tests)
                }
                None => CountCheck::without_runner(&check.command, check.tests),
            };
            match counted {
                CountCheck::Confirmed => {}
                CountCheck::Unconfirmed(text) => {
                    let finding = self.compare_with_base(&check, text).await?;
                    report.add_findings(finding);
                }
                CountCheck::Mismatch(reason) => {
                    let same = report.checks.iter().filter(|c| c.command == check.command);
                    let boxes: Vec<String> = same.flat_map(|c| self.boxes_of(&c.name)).collect();
                    report.red_boxes.extend(boxes);
                    report.add_reason(reason);
                }
            }
        }
        Ok(())
    }

    /// Runs a check at the base commit and compares the number of tests; `otherwise` is the finding
    /// where that cannot be done.
    async fn compare_with_base(
        &mut self,
        check: &CheckResult,
        otherwise: String,
    ) -> Result<Option<VerifyFinding>, RunError> {
        let base = self.state().plan.base.clone();
        let commands = [named("base", &check.command)];
        let checks = self.check_quietly(&RoomTree::of(&base), &commands).await?;
        let before = checks.first().and_then(|check| check.tests);
        Ok(match (before.map(TestCount::ran), check.tests) {
            (Some(before), Some(now)) if before > now.ran() => Some(fewer(
                &check.command,
                now.ran(),
                before,
                "the base commit has",
            )),
            (Some(before), Some(_)) if before > 0 => None,
            _ => Some(VerifyFinding::new(FindingKind::UnconfirmedCount, otherwise)),
        })
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
                report.add_findings([fewer(&command, now, before, source)]);
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

fn fewer(command: &str, now: u64, before: u64, source: &str) -> VerifyFinding {
    let text = format!("`{command}` runs {now} tests, {source} {before}");
    VerifyFinding::new(FindingKind::FewerTests, text)
}
