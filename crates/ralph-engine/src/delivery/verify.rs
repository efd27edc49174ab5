//! The verdict about a commit: every check of the pinned contract, each in a clean room of its own.

use std::collections::BTreeSet;

use ralph_core::event::Event;
use ralph_core::id::CommitId;
use ralph_core::verdict::{self, CheckResult, Verdict, VerifyFinding};

use crate::clean_room::NamedCommand;
use crate::error::RunError;
use crate::run::Run;

/// What the clean rooms found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    pub(crate) checks: Vec<CheckResult>,
    pub(crate) reasons: Vec<String>,
    /// Facts that qualify a green verdict, the most important ones first.
    pub(crate) findings: Vec<VerifyFinding>,
    /// Boxes whose own checks are red.
    pub(crate) red_boxes: BTreeSet<String>,
}

impl Report {
    fn add_reason(&mut self, reason: String) {
        // Several checks may have the same command.
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    fn add_findings(&mut self, findings: impl IntoIterator<Item = VerifyFinding>) {
        for finding in findings {
            if !self.findings.contains(&finding) {
                self.findings.push(finding);
            }
        }
        self.findings.sort_by_key(|finding| finding.kind);
    }
}

impl Run {
    /// Judges a commit. The answer is in the journal when this returns.
    pub(crate) async fn clean_room(&mut self, head: &CommitId) -> Result<Report, RunError> {
        self.journal
            .append(Event::VerifyStarted { head: head.clone() })?;
        let report = self.judge_commit(head).await?;
        self.journal.append(Event::VerifyFinished {
            head: head.clone(),
            contract: self.pinned.digest().clone(),
            green: report.reasons.is_empty(),
            checks: report.checks.clone(),
            reasons: report.reasons.clone(),
            findings: report.findings.clone(),
        })?;
        Ok(report)
    }

    async fn judge_commit(&mut self, head: &CommitId) -> Result<Report, RunError> {
        let mut report = Report::default();
        let checks = self.check_commit(head, &self.contract_checks()).await?;
        for check in checks {
            let is_green = check.result.is_green();
            if !is_green || check.objection.is_some() {
                report.red_boxes.extend(self.boxes_of(&check.result.name));
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
        report.add_findings(self.changed_test_findings().await?);
        Ok(report)
    }

    /// Returns the boxes that a check speaks for: a global one for all that have none of their own.
    fn boxes_of(&self, check: &str) -> Vec<String> {
        let boxes = self.pinned.task().checkboxes.iter();
        let global = check.starts_with("verify_commands[");
        let meant = |id: &str, own: &[String]| id == check || (global && own.is_empty());
        boxes
            .filter(|b| meant(&b.id, &b.verify))
            .map(|b| b.id.clone())
            .collect()
    }

    /// Returns every check of the contract: the verify commands of the boxes, the global ones, and
    /// the test command.
    pub(crate) fn contract_checks(&self) -> Vec<NamedCommand> {
        let task = self.pinned.task();
        let contract = self.pinned.contract();
        let named = |name: String, command: &String| NamedCommand {
            name,
            command: command.clone(),
        };
        let boxes = task
            .checkboxes
            .iter()
            .flat_map(|b| b.verify.iter().map(|command| named(b.id.clone(), command)));
        let global = contract.verify_commands.iter().enumerate();
        let global =
            global.map(|(index, command)| named(format!("verify_commands[{index}]"), command));
        let test = contract.test_command.iter();
        let test = test.map(|command| named("test_command".to_owned(), command));
        boxes.chain(global).chain(test).collect()
    }
}
