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
use crate::prepare;
use crate::run::{Run, attend};

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
        let told = match &checked {
            Ok(report) => self.tell_verdict(head, report),
            Err(_) => Ok(()),
        };
        room.remove().await?;
        let sandbox = room.id().clone();
        self.journal.append(Event::SandboxRemoved { sandbox })?;
        told?;
        checked
    }

    fn tell_verdict(&mut self, head: &CommitId, report: &Report) -> Result<(), RunError> {
        self.journal.append(Event::VerifyFinished {
            head: head.clone(),
            contract: self.pinned.digest().clone(),
            green: report.reasons.is_empty(),
            checks: report.checks.clone(),
            reasons: report.reasons.clone(),
        })?;
        Ok(())
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
            let check = if let Some(check) = known {
                CheckResult { name, ..check }
            } else {
                // What one check leaves behind must not help the next.
                git.make_clean().await?;
                self.check_once(room, name, &command).await?
            };
            if verdict::judge(std::slice::from_ref(&check)) != Verdict::Green {
                report.red_boxes.extend(self.boxes_of(&check.name));
            }
            report.checks.push(check);
        }
        if let Verdict::Red { reasons } = verdict::judge(&report.checks) {
            for reason in reasons {
                // Several checks may have the same command.
                if !report.reasons.contains(&reason) {
                    report.reasons.push(reason);
                }
            }
        }
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
        let running = room.exec(Exec::shell(command, timeout), &mut capture);
        let outcome = attend(&mut self.journal, &mut self.control, running).await??;
        let output = capture.finish();
        self.add_output(
            &format!("{command}   # in the clean room"),
            &output,
            outcome.ended,
        )?;
        let check = output.check(name, command, &outcome);
        if !check.is_green() {
            self.log_error(&format!(
                "clean room: `{command}`: {}; output ends:\n{}",
                outcome.ended,
                output.tail(20)
            ))?;
        }
        Ok(check)
    }
}
