//! The clean room: a fresh sandbox, a clean checkout of the pushed commit, the pinned contract.

use std::collections::BTreeSet;

use ralph_core::event::{Event, Purpose};
use ralph_core::id::CommitId;
use ralph_core::ports::{Exec, Sandbox};
use ralph_core::verdict::{self, CheckResult, Verdict};

use crate::actions::CHECK_TIMEOUT;
use crate::capture::Capture;
use crate::error::RunError;
use crate::git::SandboxGit;
use crate::journal::millis;
use crate::prepare;
use crate::run::{Run, answer};

/// What the clean room found.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    pub(crate) checks: Vec<CheckResult>,
    pub(crate) reasons: Vec<String>,
    /// Boxes whose own checks are red.
    pub(crate) red_boxes: BTreeSet<String>,
}

impl Run {
    /// Judges a commit. The answer is in the journal when this returns.
    pub(crate) async fn clean_room(&mut self, head: &CommitId) -> Result<Report, RunError> {
        self.journal
            .append(Event::VerifyStarted { head: head.clone() })?;
        let room = prepare::create(&mut self.journal, &self.outside, Purpose::CleanRoom).await?;
        let checked = self.check_in(&*room, head).await;
        room.remove().await?;
        self.journal.append(Event::SandboxRemoved {
            sandbox: room.id().clone(),
        })?;
        let report = checked?;
        self.journal.append(Event::VerifyFinished {
            head: head.clone(),
            contract: self.pinned.digest().clone(),
            green: report.reasons.is_empty(),
            checks: report.checks.clone(),
            reasons: report.reasons.clone(),
        })?;
        Ok(report)
    }

    async fn check_in(&mut self, room: &dyn Sandbox, head: &CommitId) -> Result<Report, RunError> {
        let branch = self.state().plan.branch.clone();
        prepare::install(room, &self.dir, &self.repo, &branch).await?;
        let git = SandboxGit::new(room);
        git.check_out().await?;
        let tree = git.status().await?;
        let mut report = Report {
            checks: Vec::new(),
            reasons: Vec::new(),
            red_boxes: BTreeSet::new(),
        };
        if tree.head.as_ref() != Some(head) {
            report.reasons.push(format!(
                "the clean checkout is not at commit {}",
                head.short()
            ));
            return Ok(report);
        }
        for (name, command) in self.clean_room_commands() {
            let known = report
                .checks
                .iter()
                .find(|check| check.command == command)
                .cloned();
            let check = match known {
                Some(check) => CheckResult { name, ..check },
                None => self.check_once(room, name, &command).await?,
            };
            if verdict::judge(std::slice::from_ref(&check)) != Verdict::Green {
                report.red_boxes.insert(check.name.clone());
            }
            report.checks.push(check);
        }
        if let Verdict::Red { reasons } = verdict::judge(&report.checks) {
            report.reasons.extend(reasons);
        }
        Ok(report)
    }

    /// Every verify command of every box, the global ones, and the test command, named after their place.
    fn clean_room_commands(&self) -> Vec<(String, String)> {
        let task = self.pinned.task();
        let contract = self.pinned.contract();
        let boxes = task.checkboxes.iter().flat_map(|b| {
            b.verify
                .iter()
                .map(|command| (b.id.clone(), command.clone()))
        });
        let global = contract
            .verify_commands
            .iter()
            .enumerate()
            .map(|(index, command)| (format!("verify_commands[{index}]"), command.clone()));
        let test = contract
            .test_command
            .iter()
            .map(|command| ("test_command".to_owned(), command.clone()));
        boxes.chain(global).chain(test).collect()
    }

    async fn check_once(
        &mut self,
        room: &dyn Sandbox,
        name: String,
        command: &str,
    ) -> Result<CheckResult, RunError> {
        let mut capture = Capture::new(&self.outside.redactor);
        let timeout = CHECK_TIMEOUT.min(self.time_left());
        let outcome = {
            let mut running =
                std::pin::pin!(room.exec(Exec::shell(command, timeout), &mut capture));
            loop {
                tokio::select! {
                    outcome = &mut running => break outcome?,
                    call = self.control.next() => answer(&mut self.journal, &mut self.control, call)?,
                }
            }
        };
        let output = capture.finish();
        self.add_output(
            &format!("{command}   # in the clean room"),
            &output,
            outcome.ended,
        )?;
        if !outcome.ended.is_success() {
            self.log_error(&format!(
                "clean room: `{command}`: {}; output ends:\n{}",
                outcome.ended,
                output.tail(20)
            ))?;
        }
        Ok(CheckResult {
            name,
            command: command.to_owned(),
            ended: outcome.ended,
            duration_ms: millis(outcome.duration),
            tests: verdict::count_tests(&output.both),
        })
    }
}
