//! A claimed box is a proposal: the runner runs its verify commands and ticks it, or not.

use std::collections::BTreeSet;
use std::time::Duration;

use ralph_core::action::Claims;
use ralph_core::event::{IterationEvent, VerificationEvent};
use ralph_core::path::WorkspacePath;
use ralph_core::ports::{Exec, ExecOutcome};
use ralph_core::task::NamedBox;
use ralph_core::verdict::{self, CheckResult, Verdict};

use crate::capture::{Capture, Captured};
use crate::error::RunError;
use crate::git::{GitError, SandboxGit, WorkSnapshot};
use crate::run::Run;
use crate::workspace::TamperFinding;

/// How long a verify or test command may take.
pub(crate) const CHECK_TIMEOUT: Duration = Duration::from_mins(30);

/// How much of a claim is shown, in characters.
const MAX_SHOWN_CHARS: usize = 120;

/// How many boxes an answer to an unclear claim lists.
const MAX_LISTED: usize = 20;

/// Returns a claim as messages show it: one line without control characters.
fn display_claim(claim: &str) -> String {
    let line = claim.chars().map(|c| if c.is_control() { ' ' } else { c });
    line.take(MAX_SHOWN_CHARS).collect()
}

/// Joins the first entries of a list and counts the rest.
fn join_first(entries: &[&str], separator: &str) -> String {
    let listed = entries[..entries.len().min(MAX_LISTED)].join(separator);
    match entries.len().saturating_sub(MAX_LISTED) {
        0 => listed,
        more => format!("{listed}{separator}and {more} more"),
    }
}

impl Run {
    /// Looks at every claim and ticks the boxes that hold.
    pub(crate) async fn check_claims(&mut self, claims: &Claims) -> Result<(), RunError> {
        let before = self.complete_milestones();
        let mut ticked = self.state().ticked.clone();
        let (claimed, unclear) = self.claimed_boxes(claims);
        for id in claimed {
            if ticked.contains(&id) {
                continue;
            }
            let (checks, refusal) = self.verify_box(&id).await?;
            let verified = refusal.is_none();
            let why = refusal.unwrap_or_default();
            if verified {
                ticked.insert(id.clone());
                self.log_activity(&format!("box {id} is verified"))?;
            } else {
                let line = format!("box {id} was claimed but is not ticked: {why}");
                self.log_activity(&line)?;
                self.log_error(&line)?;
            }
            let iteration = self.state().iteration;
            self.journal.append(IterationEvent::ClaimChecked {
                iteration,
                checkbox: id,
                verified,
                why,
                checks,
            })?;
        }
        self.scratch.newly_ticked += ticked.difference(&self.state().ticked).count();
        self.set_ticks(&ticked)?;
        self.reject_unclear_claims(unclear)?;
        self.check_milestones(claims)?;
        let complete = self.complete_milestones();
        // After a crash nobody knows which were complete before; one push too many is harmless.
        let unknown = self.scratch.resumed && !complete.is_empty();
        self.scratch.milestone_reached = complete != before || unknown;
        Ok(())
    }

    /// Returns the ids of the boxes that are claimed, and the claims that name no box or more than one,
    /// each with the reason.
    fn claimed_boxes(&self, claims: &Claims) -> (BTreeSet<String>, Vec<(String, String)>) {
        let mut boxes = BTreeSet::new();
        let mut unclear = Vec::new();
        let names = self.pinned.task().box_names();
        for claim in &claims.checkboxes_checked {
            let claimed = display_claim(claim);
            match names.find(claim) {
                NamedBox::One(checkbox) => {
                    boxes.insert(checkbox.id.clone());
                }
                NamedBox::Ambiguous(found) => {
                    let ids: Vec<&str> = found.iter().map(|it| it.id.as_str()).collect();
                    let why = format!("it fits several checkboxes: {}", join_first(&ids, ", "));
                    unclear.push((claimed, why));
                }
                NamedBox::Unknown => {
                    let why = format!("the task has no checkbox `{claimed}`");
                    unclear.push((claimed, why));
                }
            }
        }
        (boxes, unclear)
    }

    /// Answers unclear claims with the open boxes: nothing is ticked by guess.
    fn reject_unclear_claims(&mut self, unclear: Vec<(String, String)>) -> Result<(), RunError> {
        if unclear.is_empty() {
            return Ok(());
        }
        for (claim, why) in unclear {
            let line = format!("box {claim} was claimed but is not ticked: {why}");
            self.log_activity(&line)?;
            self.log_error(&line)?;
            self.record_rejected_claim(claim, why)?;
        }
        let open = self.pinned.task().open_boxes(&self.state().ticked);
        let open: Vec<&str> = open.iter().map(String::as_str).collect();
        let list = if open.is_empty() {
            "none".to_owned()
        } else {
            join_first(&open, "; ")
        };
        self.log_error(&format!("claim checkboxes by their id; open are: {list}"))
    }

    /// Records a claim that was not checked.
    fn record_rejected_claim(&mut self, claim: String, why: String) -> Result<(), RunError> {
        let iteration = self.state().iteration;
        self.journal.append(IterationEvent::ClaimChecked {
            iteration,
            checkbox: claim,
            verified: false,
            why,
            checks: Vec::new(),
        })?;
        Ok(())
    }

    async fn verify_box(
        &mut self,
        id: &str,
    ) -> Result<(Vec<CheckResult>, Option<String>), RunError> {
        let Some(checkbox) = self.pinned.task().checkbox(id) else {
            return Ok((Vec::new(), Some(format!("the task has no checkbox `{id}`"))));
        };
        let mut commands = checkbox.verify.clone();
        if commands.is_empty() {
            commands.clone_from(&self.pinned.contract().verify_commands);
        }
        let mut checks = Vec::new();
        for command in &commands {
            checks.push(self.run_check(id, command).await?);
        }
        match verdict::judge(&checks) {
            Verdict::Green => Ok((checks, None)),
            Verdict::Red { reasons } => Ok((checks, Some(reasons.join("; ")))),
        }
    }

    /// Runs a check in the workspace; the same command is not run twice on the same files.
    pub(crate) async fn run_check(
        &mut self,
        name: &str,
        command: &str,
    ) -> Result<CheckResult, RunError> {
        if let Some(known) = self.scratch.checks.get(command) {
            return Ok(CheckResult {
                name: name.to_owned(),
                duration_ms: 0,
                ..known.clone()
            });
        }
        let before = SandboxGit::new(&*self.sandbox).snapshot().await?;
        self.journal.append(VerificationEvent::CheckStarted {
            command: command.to_owned(),
        })?;
        let mut capture = Capture::new(&self.services.redactor);
        let outcome = self
            .exec(Exec::shell(command, CHECK_TIMEOUT), &mut capture)
            .await?;
        let output = capture.finish();
        self.append_test_output(command, &output, outcome.ended)?;
        if let Some(before) = before {
            self.discard_check_changes(command, &before).await?;
        }
        let check = output.to_check_result(name, command, &outcome);
        self.scratch
            .checks
            .insert(command.to_owned(), check.clone());
        Ok(check)
    }

    /// Discards the commits and file changes of a check, so that they never land on the branch.
    /// Ignored files stay: they make the next build fast.
    async fn discard_check_changes(
        &mut self,
        command: &str,
        before: &WorkSnapshot,
    ) -> Result<(), RunError> {
        let changed = match SandboxGit::new(&*self.sandbox).restore(before).await {
            Ok(changed) => changed,
            // A damaged repository is repaired when the iteration is settled.
            Err(RunError::Git(GitError::InSandbox { .. })) => return Ok(()),
            Err(error) => return Err(error),
        };
        let Some(path) = changed.first().cloned() else {
            return Ok(());
        };
        let others = match changed.len() {
            1 => String::new(),
            count => format!(", with {} other paths", count - 1),
        };
        let finding = format!("changed by the check `{command}`{others}; put back");
        self.record_tampering(vec![TamperFinding { path, finding }])
    }

    /// Remembers what a command of the model's says about the tests, and that files may have changed.
    pub(crate) fn update_checks_after_command(
        &mut self,
        command: &str,
        cwd: Option<&WorkspacePath>,
        outcome: &ExecOutcome,
        output: &Captured,
    ) {
        let is_test =
            cwd.is_none() && self.pinned.contract().test_command.as_deref() == Some(command);
        self.scratch.checks.clear();
        if is_test {
            let check = output.to_check_result("test_command", command, outcome);
            self.scratch.checks.insert(command.to_owned(), check);
        }
    }

    fn check_milestones(&mut self, claims: &Claims) -> Result<(), RunError> {
        let complete = self.complete_milestones();
        for id in &claims.milestones_completed {
            let milestone = self.pinned.task().named_milestone(id);
            let why = match milestone.map(|milestone| &milestone.id) {
                Some(id) if complete.contains(id) => continue,
                Some(id) => format!("milestone `{id}` still has open boxes"),
                None => format!("the task has no milestone `{}`", display_claim(id)),
            };
            self.log_error(&why)?;
            self.record_rejected_claim(display_claim(id), why)?;
        }
        Ok(())
    }

    fn complete_milestones(&self) -> BTreeSet<String> {
        let task = self.pinned.task();
        let ticked = &self.state().ticked;
        task.milestones
            .iter()
            .filter(|milestone| {
                let mut boxes = task.milestone_boxes(&milestone.id).peekable();
                boxes.peek().is_some() && boxes.all(|checkbox| ticked.contains(&checkbox.id))
            })
            .map(|milestone| milestone.id.clone())
            .collect()
    }
}
