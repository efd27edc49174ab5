//! Delivery: pushing the branch, keeping the pull request, granting or refusing success.

use ralph_core::event::{DeliveryEvent, Event, IterationOutcome, RunEvent, VerificationEvent};
use ralph_core::id::CommitId;
use ralph_core::plan::Delivery;
use ralph_core::ports::{PullDraft, PullState};
use ralph_core::printable;
use ralph_core::run::{PauseReason, RunStatus};
use ralph_core::surface::{self, Surface};
use ralph_core::verdict::{self, CheckResult, CompletionState};

use super::pull_body;
use crate::error::RunError;
use crate::git::GitError;
use crate::rules;
use crate::run::Run;

/// What delivering means for the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DeliveryOutcome {
    /// There is more to do.
    Unfinished,
    /// The run has succeeded.
    Success,
    /// A person must decide before it can succeed.
    NeedsApproval(PauseReason),
}

/// The files of a run that are saved beside its branch.
const SAVED_FILES: [&str; 5] = [
    "journal.jsonl",
    "ralph_task.md",
    "contracts",
    "files",
    "iterations",
];
/// How often saving is tried: runs of the same task save under the same ref.
const MAX_SAVE_ATTEMPTS: usize = 20;

impl Run {
    /// Publishes what is due and tells whether the run has succeeded.
    pub(crate) async fn deliver(
        &mut self,
        outcome: &IterationOutcome,
    ) -> Result<DeliveryOutcome, RunError> {
        let asked = *outcome == IterationOutcome::StopRequested;
        let standing = self.completion_state();
        match verdict::may_finish(&standing) {
            Ok(()) if asked || !self.is_known_red() => {
                let refused = self.refused_test_changes().await?;
                if refused.is_empty() {
                    return self.try_success().await;
                }
                self.refuse_success(refused)?;
            }
            // With all boxes ticked, whoever does not hear what is missing goes on for nothing.
            Err(reasons) if asked || standing.open_boxes.is_empty() => {
                self.refuse_success(reasons)?;
            }
            Ok(()) | Err(_) => {}
        }
        let first = self.state().pushed.is_none();
        let unpushed = self.state().pushed.as_ref() != Some(&self.state().head);
        let due = standing.commits > 0 && unpushed && (first || self.scratch.milestone_reached);
        if due {
            self.publish_draft().await?;
        }
        Ok(DeliveryOutcome::Unfinished)
    }

    /// Tries to end a run that waited only for the approval of changed tests.
    pub(crate) async fn finish_approved(&mut self) -> Result<Option<RunStatus>, RunError> {
        let state = self.state();
        let is_green = state.verified.as_ref() == Some(&(state.head.clone(), true));
        let waits = state.approved_tests.is_some() && state.open.is_none() && is_green;
        if !waits || verdict::may_finish(&self.completion_state()).is_err() {
            return Ok(None);
        }
        Ok(match self.try_success().await? {
            DeliveryOutcome::Success => Some(RunStatus::Succeeded),
            DeliveryOutcome::NeedsApproval(reason) => Some(RunStatus::Paused(reason)),
            DeliveryOutcome::Unfinished => None,
        })
    }

    /// Publishes at the end of a run what no milestone has: an unfinished branch is still the work.
    pub(crate) async fn deliver_remaining(&mut self) -> Result<(), RunError> {
        let state = self.state();
        let unpushed = state.pushed.as_ref() != Some(&state.head);
        if state.head != state.plan.base && unpushed {
            self.publish_draft().await?;
        }
        Ok(())
    }

    async fn publish_draft(&mut self) -> Result<(), RunError> {
        if let Err(reasons) = self.publish(PullState::Draft, &[]).await? {
            self.log_error(&format!("not pushed: {}", reasons.join("; ")))?;
        }
        Ok(())
    }

    fn completion_state(&self) -> CompletionState {
        let state = self.state();
        let open = self
            .pinned
            .task()
            .checkboxes
            .iter()
            .filter(|checkbox| !state.ticked.contains(&checkbox.id));
        CompletionState {
            open_boxes: open.map(|checkbox| checkbox.id.clone()).collect(),
            dirty_files: self.workspace_view.tree.dirty_paths(),
            commits: u64::from(state.head != state.plan.base),
        }
    }

    /// Tells whether this very commit was red in a clean room already. After a crash it may have
    /// been so a moment ago, with nothing done about it yet.
    fn is_known_red(&self) -> bool {
        let state = self.state();
        !self.scratch.resumed
            && state
                .verified
                .as_ref()
                .is_some_and(|(head, green)| *head == state.head && !green)
    }

    async fn try_success(&mut self) -> Result<DeliveryOutcome, RunError> {
        if let Err(reasons) = self.publish(PullState::Draft, &[]).await? {
            self.refuse_success(reasons)?;
            return Ok(DeliveryOutcome::Unfinished);
        }
        self.set_status(RunStatus::Verifying)?;
        let head = self.state().head.clone();
        let report = self.verify_commit(&head).await?;
        if report.is_green() {
            self.push_if_missing().await?;
            if let Some(reason) = self.unapproved_test_changes().await? {
                self.set_status(RunStatus::Running)?;
                return Ok(DeliveryOutcome::NeedsApproval(reason));
            }
            let ready = self.pinned.contract().pr.ready_on_success;
            let state = if ready {
                PullState::Open
            } else {
                PullState::Draft
            };
            if let Err(reasons) = self.publish(state, &report.checks).await? {
                self.refuse_success(reasons)?;
                self.set_status(RunStatus::Running)?;
                return Ok(DeliveryOutcome::Unfinished);
            }
            self.log_activity(&format!("verified: commit {}", head.short()))?;
            return Ok(DeliveryOutcome::Success);
        }
        let red: Vec<&str> = report.red_boxes.iter().map(String::as_str).collect();
        self.log_activity(&format!(
            "red in the clean room, boxes are open again: {}",
            red.join(", ")
        ))?;
        let mut ticked = self.state().ticked.clone();
        ticked.retain(|id| !report.red_boxes.contains(id));
        self.set_ticks(&ticked)?;
        let reasons = report
            .reasons
            .iter()
            .map(|why| format!("in the clean room: {why}"))
            .collect();
        self.refuse_success(reasons)?;
        self.set_status(RunStatus::Running)?;
        Ok(DeliveryOutcome::Unfinished)
    }

    fn refuse_success(&mut self, reasons: Vec<String>) -> Result<(), RunError> {
        let line = format!("success is refused: {}", reasons.join("; "));
        self.log_activity(&line)?;
        self.log_error(&line)?;
        let iteration = self.state().iteration;
        self.journal
            .append(VerificationEvent::SuccessRefused { iteration, reasons })?;
        Ok(())
    }

    /// Pushes the branch and brings the pull request up to date; the inner error is a rule it breaks.
    async fn publish(
        &mut self,
        state: PullState,
        evidence: &[CheckResult],
    ) -> Result<Result<(), Vec<String>>, RunError> {
        let surface = self.changed_surface().await?;
        let broken = self.broken_rules(&surface).await?;
        if !broken.is_empty() {
            return Ok(Err(broken));
        }
        self.push().await?;
        if !evidence.is_empty() {
            self.report_configuration_changes(&surface)?;
        }
        if self.state().plan.delivery == Delivery::PullRequest {
            let draft = self.pull_draft(state, evidence, &surface);
            let (pull, opened) = match self.state().pull.clone() {
                Some(pull) => (self.services.scm.update(pull.number, &draft).await?, false),
                None => (self.services.scm.open(&draft).await?, true),
            };
            if self.state().pull.as_ref() != Some(&pull) {
                let verb = if opened { "opened" } else { "updated" };
                self.log_activity(&format!("pull request {} {verb}", pull.number))?;
                self.journal
                    .append(DeliveryEvent::PullRequestUpdated { pull, opened })?;
            }
        }
        Ok(Ok(()))
    }

    pub(super) async fn changed_surface(&self) -> Result<Surface, RunError> {
        let state = self.state();
        let changed = self
            .repo
            .changed_paths(&state.plan.base, &state.head)
            .await?;
        let mut commands: Vec<String> = self
            .pinned
            .task()
            .all_verify_commands()
            .iter()
            .map(ToString::to_string)
            .collect();
        commands.extend(self.pinned.contract().test_command.clone());
        let mut surface = surface::inspect_changes(&changed, &commands);
        self.add_test_changes(&changed, &mut surface).await?;
        let strange = self.repo.strange_entries(&state.plan.base, &state.head);
        surface.executes_for_developers.extend(strange.await?);
        Ok(surface)
    }

    /// Reports that the branch changes files which the next runs would read.
    fn report_configuration_changes(&mut self, surface: &Surface) -> Result<(), RunError> {
        let files = surface.approvals();
        if !files.is_empty() {
            let message = format!("changed — approve to rebuild: {}", files.join(", "));
            self.journal.append(RunEvent::Notice { message })?;
        }
        Ok(())
    }

    /// Returns the rules that the branch breaks: secrets in it, workflows that nobody allowed.
    async fn broken_rules(&self, surface: &Surface) -> Result<Vec<String>, RunError> {
        let mut broken = Vec::new();
        if !self.pinned.contract().allow_workflow_changes {
            let named = surface.workflows.iter().map(|finding| {
                format!("`{}` is a workflow file; the task does not allow to change it, take the change back", finding.path)
            });
            broken.extend(named);
        }
        let (base, head) = (&self.state().plan.base, &self.state().head);
        let history = self.repo.history(base, head, rules::MAX_SEARCHED).await?;
        broken.extend(rules::refuse_commits(
            &self.services.redactor,
            history.as_ref(),
            base,
            self.pinned.own_files(),
        ));
        Ok(broken)
    }

    /// Success is said of a branch that is there: somebody may have removed it meanwhile.
    async fn push_if_missing(&mut self) -> Result<(), RunError> {
        let (branch, head) = (self.state().plan.branch.clone(), self.state().head.clone());
        let reference = format!("refs/heads/{branch}");
        let remote = self.services.scm.remote().to_owned();
        if self.repo.remote_ref(&remote, &reference).await?.as_ref() != Some(&head) {
            self.push_and_sync(&head, &reference).await?;
            self.journal
                .append(DeliveryEvent::Pushed { branch, head })?;
        }
        Ok(())
    }

    /// Pushes a commit and waits until it would survive a power cut at the source host. The record of a push
    /// comes after this.
    async fn push_and_sync(&self, commit: &CommitId, reference: &str) -> Result<(), RunError> {
        let remote = self.services.scm.remote();
        if self.state().epoch > 1 {
            // A power cut during an earlier push may have left a branch whose objects are missing.
            let base = &self.state().plan.base;
            self.repo
                .delete_damaged_branch(remote, reference, base)
                .await?;
        }
        self.repo.push(remote, commit, reference).await?;
        Ok(self.services.scm.sync().await?)
    }

    async fn push(&mut self) -> Result<(), RunError> {
        let state = self.state();
        let (branch, head) = (state.plan.branch.clone(), state.head.clone());
        if state.pushed.as_ref() == Some(&head) {
            return Ok(());
        }
        self.services.scm.check_push(&branch).await?;
        self.journal.append(DeliveryEvent::PushStarted {
            branch: branch.clone(),
            head: head.clone(),
        })?;
        self.push_and_sync(&head, &format!("refs/heads/{branch}"))
            .await?;
        self.log_activity(&format!("pushed {} to {branch}", head.short()))?;
        self.journal
            .append(DeliveryEvent::Pushed { branch, head })?;
        Ok(())
    }

    fn pull_draft(
        &self,
        state: PullState,
        evidence: &[CheckResult],
        surface: &Surface,
    ) -> PullDraft {
        let run = self.state();
        let settings = &self.pinned.contract().pr;
        let redactor = &self.services.redactor;
        let clean = |text: &str| printable::escape_text(&redactor.redact(text)).into_owned();
        let facts = pull_body::PullRequestFacts {
            state: run,
            task: self.pinned.task(),
            evidence,
            surface,
        };
        PullDraft {
            run: run.plan.run.to_string(),
            head: run.plan.branch.clone(),
            base: run.plan.base_branch.clone(),
            commit: run.head.clone(),
            title: clean(&pull_body::title(&facts)),
            body: clean(&pull_body::body(&facts)),
            labels: settings.labels.clone(),
            state: if settings.draft {
                state
            } else {
                PullState::Open
            },
        }
    }

    /// Saves the run's files under `refs/ralph/<task>`, here and at the source host.
    pub(crate) async fn save_state(&mut self) -> Result<(), RunError> {
        let reference = format!("refs/ralph/{}", self.state().plan.task_id);
        let remote = self.services.scm.remote().to_owned();
        let message = format!("State of run {}\n", self.state().plan.run);
        let (dir, repo) = (self.dir.root(), &self.repo);
        let snapshot = || repo.commit_snapshot(dir, &SAVED_FILES, &reference, &message);
        let saved = async {
            repo.fetch_if_missing(&remote, &reference).await?;
            let mut commit = snapshot().await?;
            let mut pushed = self.push_and_sync(&commit, &reference).await;
            for _ in 1..MAX_SAVE_ATTEMPTS {
                let is_refused = matches!(
                    &pushed,
                    Err(RunError::Git(
                        GitError::Moved { .. } | GitError::Failed { .. }
                    ))
                );
                if !is_refused {
                    break;
                }
                // Another run of the same task may have saved its files in the meantime.
                repo.fetch_latest(&remote, &reference).await?;
                commit = snapshot().await?;
                pushed = self.push_and_sync(&commit, &reference).await;
            }
            pushed.map(|()| commit)
        };
        let event = match saved.await {
            Ok(commit) => Event::Delivery(DeliveryEvent::StateSaved { reference, commit }),
            // The host's copy decides; the side ref is for the day it is gone.
            Err(error) => Event::Run(RunEvent::Notice {
                message: format!("the run's files were not saved to {reference}: {error}"),
            }),
        };
        self.journal.append(event)?;
        Ok(())
    }
}
