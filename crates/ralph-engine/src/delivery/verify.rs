//! The verdict about a commit: every check of the pinned contract, each in a clean room of its own.

use std::collections::BTreeSet;

use ralph_core::checks;
use ralph_core::event::VerificationEvent;
use ralph_core::id::CommitId;
use ralph_core::surface::ChangedPath;
use ralph_core::verdict::{self, CheckResult, FindingKind, Verdict, VerifyFinding};

use super::branch_findings::branch_findings;
use super::test_changes::changed_test_findings;
use super::test_counts::{confirm_counts, run_base_tests};
use crate::clean_room::check_tree;
use crate::clean_room::{NamedCommand, RoomTree};
use crate::contract::PinnedTask;
use crate::error::RunError;
use crate::run::Run;

/// The result of the checks in the clean rooms.
#[derive(Debug, Clone, Default)]
pub(crate) struct CleanRoomReport {
    pub(crate) checks: Vec<CheckResult>,
    pub(crate) reasons: Vec<String>,
    /// Facts that qualify a green verdict, the most important ones first.
    pub(crate) findings: Vec<VerifyFinding>,
    /// Boxes that a red check covers.
    pub(crate) red_boxes: BTreeSet<String>,
    /// Commands whose output was truncated.
    pub(super) truncated: BTreeSet<String>,
}

impl CleanRoomReport {
    /// Returns whether all checks passed without objections.
    pub(crate) fn is_green(&self) -> bool {
        self.reasons.is_empty()
    }

    pub(super) fn add_reason(&mut self, reason: String) {
        // Several checks may have the same command.
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    pub(super) fn add_findings(&mut self, findings: impl IntoIterator<Item = VerifyFinding>) {
        for finding in findings {
            if !self.findings.contains(&finding) {
                self.findings.push(finding);
            }
        }
        self.findings.sort_by_key(|finding| finding.kind);
    }
}

/// Which verification of a commit this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VerifyRound {
    First,
    /// Repeats a green verification, because the commit was red before.
    Confirmation,
}

/// Judges a commit and records the verdict in the journal. A commit that was red before must be
/// green twice in a row.
pub(crate) async fn verify_commit(
    run: &mut Run,
    head: &CommitId,
) -> Result<CleanRoomReport, RunError> {
    let was_red = run.recorder.state().red_commits.contains(head);
    let report = verify_once(run, head, VerifyRound::First).await?;
    if was_red && report.is_green() {
        return verify_once(run, head, VerifyRound::Confirmation).await;
    }
    Ok(report)
}

async fn verify_once(
    run: &mut Run,
    head: &CommitId,
    round: VerifyRound,
) -> Result<CleanRoomReport, RunError> {
    run.recorder
        .append(VerificationEvent::VerifyStarted { head: head.clone() })?;
    let mut report = judge_commit(run, head).await?;
    if round == VerifyRound::Confirmation && report.is_green() {
        let text = format!(
            "flaky: commit {} was red in an earlier clean room, then green twice in a row without a change",
            head.short()
        );
        report.add_findings([VerifyFinding::new(FindingKind::Flaky, text)]);
    }
    run.recorder.append(VerificationEvent::VerifyFinished {
        head: head.clone(),
        contract: run.pinned.digest().clone(),
        green: report.is_green(),
        checks: report.checks.clone(),
        reasons: report.reasons.clone(),
        findings: report.findings.clone(),
    })?;
    Ok(report)
}

async fn judge_commit(run: &mut Run, head: &CommitId) -> Result<CleanRoomReport, RunError> {
    let mut report = CleanRoomReport::default();
    let base = run.recorder.state().plan.base.clone();
    let protected = protected_changes(
        &run.pinned,
        &run.bench.repo.changed_paths(&base, head).await?,
    );
    let tree = RoomTree::for_commit(head).with_base_files(&base, &protected);
    let checks = check_tree(
        &mut run.recorder,
        &run.bench,
        &mut run.controls,
        &run.services,
        &tree,
        &contract_checks(&run.pinned),
    )
    .await?;
    report.add_findings(checks::protected_finding(&protected));
    for check in checks {
        let is_green = check.result.is_green();
        if !is_green || check.objection.is_some() {
            report
                .red_boxes
                .extend(boxes_for_check(&run.pinned, &check.result.name));
        }
        if check.is_truncated {
            report.truncated.insert(check.result.command.clone());
        }
        report.checks.push(check.result);
        report.add_findings(check.findings);
        if let Some(objection) = check.objection {
            report.add_reason(objection);
        }
    }
    if let Verdict::Red { reasons } = verdict::judge(&report.checks) {
        for reason in reasons {
            report.add_reason(reason);
        }
    }
    report.add_findings(changed_test_findings(&run.recorder, &run.bench, &run.pinned).await?);
    if report.is_green() {
        confirm_counts(run, &tree, &mut report).await?;
        run_base_tests(run, head, &mut report).await?;
        report.add_findings(branch_findings(&run.recorder, &run.bench, &run.pinned, head).await?);
    }
    Ok(report)
}

/// Returns the changed files that the task protects.
pub(super) fn protected_changes(pinned: &PinnedTask, changed: &[ChangedPath]) -> Vec<ChangedPath> {
    checks::protected_changes(changed, &pinned.contract().verification.protected)
}

/// Returns the boxes that a check covers: a global one covers all boxes without a check of their
/// own, and so does the test command if there is no global one.
pub(super) fn boxes_for_check(pinned: &PinnedTask, check: &str) -> Vec<String> {
    let boxes = pinned.task().checkboxes.iter();
    let has_global = !pinned.contract().verify_commands.is_empty();
    let global = check.starts_with("verify_commands[") || (check == "test_command" && !has_global);
    let meant = |id: &str, own: &[String]| id == check || (global && own.is_empty());
    boxes
        .filter(|b| meant(&b.id, &b.verify))
        .map(|b| b.id.clone())
        .collect()
}

/// Returns every check of the contract: the verify commands of the boxes, the global ones, and
/// the test command.
pub(crate) fn contract_checks(pinned: &PinnedTask) -> Vec<NamedCommand> {
    let task = pinned.task();
    let contract = pinned.contract();
    let named = |name: String, command: &String| NamedCommand {
        name,
        command: command.clone(),
    };
    let boxes = task
        .checkboxes
        .iter()
        .flat_map(|b| b.verify.iter().map(|command| named(b.id.clone(), command)));
    let global = contract.verify_commands.iter().enumerate();
    let global = global.map(|(index, command)| named(format!("verify_commands[{index}]"), command));
    let test = contract.test_command.iter();
    let test = test.map(|command| named("test_command".to_owned(), command));
    boxes.chain(global).chain(test).collect()
}
