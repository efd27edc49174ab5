//! Works on one issue, from its checks to the record of its result.

use std::sync::Arc;

use ralph_core::id::RunId;
use ralph_core::ports::HostIssue;
use ralph_core::spec::{IssueStatus, Spec, normalise_body};
use ralph_engine::store::RunDir;
use tokio::sync::watch;

use super::claim::{Claim, claim_issue, current_claim};
use super::comments::{blocked_text, comment_status, error_text, findings_text};
use super::dependencies::{DependencyGate, KnownIssues};
use super::front_end::{IssueEnd, IssueEvent, IssueFrontEnd};
use super::records::IssueRecord;
use super::repository::IssueRepository;
use super::settle::{report_cycle, settle};
use super::start::{IssueRunOptions, resume_run, start_run};
use crate::error::AppError;
use crate::planning::describe_finding;
use crate::runs::ReadyRun;

/// The caller that starts the work on an issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IssueCaller {
    /// A person named the issue, which overrides the filter of authors and the status.
    Person,
    /// The issue was found by its labels.
    Poller,
}

/// The work on one issue.
struct IssueWork<'a> {
    repository: &'a Arc<IssueRepository>,
    issue: HostIssue,
    caller: IssueCaller,
    options: &'a IssueRunOptions,
    front_end: &'a dyn IssueFrontEnd,
    interrupted: watch::Receiver<bool>,
    /// The status of an issue whose work did not start.
    restored: IssueStatus,
}

/// Works on an issue until its run ends, waits or is interrupted. An issue that cannot start is reported in its
/// labels and in a comment.
pub async fn work_on_issue(
    (repository, number): (&Arc<IssueRepository>, u64),
    caller: IssueCaller,
    options: &IssueRunOptions,
    front_end: &dyn IssueFrontEnd,
    interrupted: watch::Receiver<bool>,
) -> Result<IssueEnd, AppError> {
    let lock = repository.records.lock(number)?;
    let end = match (repository.issue(number).await?, &lock) {
        (Some(_), None) => held_by_another(repository, number)?,
        (Some(issue), Some(_)) => {
            let work = IssueWork {
                repository,
                issue,
                caller,
                options,
                front_end,
                interrupted,
                restored: IssueStatus::Ready,
            };
            let end = Box::pin(work.run()).await?;
            if is_settled(&end) {
                repository.records.remove_claim(number)?;
            }
            end
        }
        (None, _) => refused(
            format!("there is no issue #{number} in `{}`", repository.name()),
            "the number does not exist, or is a pull request",
            "check the number, or the repository with `ralph scm check`",
        ),
    };
    drop(lock);
    front_end.report(&IssueEvent::Ended {
        number,
        end: end.clone(),
    });
    Ok(end)
}

/// Returns whether an issue with this result is not in progress any more.
fn is_settled(end: &IssueEnd) -> bool {
    match end {
        IssueEnd::Done { .. }
        | IssueEnd::AlreadyDone
        | IssueEnd::Failed { .. }
        | IssueEnd::NeedsAttention { .. }
        | IssueEnd::Blocked(_) => true,
        IssueEnd::Interrupted | IssueEnd::Refused(_) => false,
    }
}

/// Refuses an issue that another process of this machine works on.
fn held_by_another(repository: &IssueRepository, number: u64) -> Result<IssueEnd, AppError> {
    let claim = repository.records.load_claim(number)?;
    Ok(match claim.and_then(|claim| claim.run) {
        Some(run) => refused_for_run(number, run.as_str()),
        None => refused(
            format!("issue #{number} is in progress"),
            "another process of this machine works on it",
            "wait until it is done",
        ),
    })
}

fn refused_for_run(number: u64, run: &str) -> IssueEnd {
    refused(
        format!("issue #{number} is in progress"),
        format!("another process works on its run `{run}`"),
        format!("follow it with `ralph attach {run}`"),
    )
}

fn refused(what: String, why: impl Into<String>, fix: impl Into<String>) -> IssueEnd {
    IssueEnd::Refused(AppError::runtime(what, why, fix))
}

/// The run that continues, or the reason for its absence.
enum ExistingRun {
    /// An unfinished run of this issue, which no process works on.
    Unfinished(IssueRecord),
    /// A run that ended, or that a process finished, without a record in the issue.
    Unsettled(RunDir, IssueRecord),
    /// A process works on it.
    Held(String),
    /// A process of this machine claimed the issue and ended before its run existed.
    Claimed,
    /// Another machine works on the issue.
    Foreign,
    /// A new run is needed.
    None,
}

impl ExistingRun {
    /// Returns the run that a claim continues.
    fn run(&self) -> Option<RunId> {
        match self {
            Self::Unfinished(record) => Some(record.run.clone()),
            Self::Unsettled(..) | Self::Held(_) | Self::Claimed | Self::Foreign | Self::None => {
                None
            }
        }
    }
}

impl IssueWork<'_> {
    async fn run(mut self) -> Result<IssueEnd, AppError> {
        if let Some(end) = self.reject() {
            return Ok(end);
        }
        let labels = self.repository.labels();
        let status = labels.find_status(&self.issue.labels);
        if status == Some(IssueStatus::Done) {
            // A process may have ended before it removed the other labels.
            let number = self.issue.number;
            self.repository
                .set_status(number, IssueStatus::Done)
                .await?;
            return Ok(IssueEnd::AlreadyDone);
        }
        if let Some(end) = self.reject_status(status) {
            return Ok(end);
        }
        let existing = self.existing_run(status).await?;
        if let Some(end) = self.reject_run(&existing) {
            return Ok(end);
        }
        if let ExistingRun::Unsettled(dir, mut record) = existing {
            return Box::pin(settle(self.repository, &dir, &mut record, self.front_end)).await;
        }
        let spec = match Spec::parse(self.issue.number, &self.issue.title, &self.issue.body) {
            Ok(spec) => spec,
            Err(findings) => {
                let (why, _) = findings.first().map(describe_finding).unwrap_or_default();
                let number = self.issue.number;
                comment_status(self.repository, number, &findings_text(&findings)).await?;
                self.set_unclaimed(IssueStatus::NeedsAttention).await?;
                return Ok(IssueEnd::NeedsAttention { reason: why });
            }
        };
        if let Some(end) = self.wait_for_dependencies(&spec).await? {
            return Ok(end);
        }
        self.restored = match (status, &existing) {
            (Some(IssueStatus::InProgress), ExistingRun::Unfinished(_)) => IssueStatus::InProgress,
            (Some(IssueStatus::NeedsAttention), _) => IssueStatus::NeedsAttention,
            (Some(_) | None, _) => IssueStatus::Ready,
        };
        // An issue in progress already belongs to this machine.
        let run = existing.run();
        if status != Some(IssueStatus::InProgress)
            && claim_issue(self.repository, &self.issue, run).await? == Claim::Lost
        {
            return Ok(refused(
                format!("issue #{} is in progress", self.issue.number),
                "another process claimed it at the same time",
                "wait until it is done",
            ));
        }
        Box::pin(self.work_on_run(existing, &spec)).await
    }

    /// Refuses an issue that another process works on.
    fn reject_run(&self, existing: &ExistingRun) -> Option<IssueEnd> {
        match existing {
            ExistingRun::Held(run) => Some(refused_for_run(self.issue.number, run)),
            ExistingRun::Foreign => {
                let labels = self.repository.labels();
                Some(refused(
                    format!("issue #{} is in progress", self.issue.number),
                    "another machine works on it, or its process ended there",
                    format!(
                        "continue it there, or start over: replace the label `{}` by `{}`",
                        labels.in_progress, labels.ready
                    ),
                ))
            }
            ExistingRun::Unsettled(..)
            | ExistingRun::Unfinished(_)
            | ExistingRun::Claimed
            | ExistingRun::None => None,
        }
    }

    /// Refuses an issue that must not be touched.
    fn reject(&self) -> Option<IssueEnd> {
        let issue = &self.issue;
        if !issue.open {
            return Some(refused(
                format!("issue #{} is closed", issue.number),
                "a closed issue is not worked on",
                "reopen it",
            ));
        }
        let is_allowed = self.repository.is_by_author(issue);
        let has_label = self.repository.labels().is_spec(&issue.labels);
        if self.caller == IssueCaller::Poller && !(is_allowed && has_label) {
            return Some(refused(
                format!("issue #{} is not worked on", issue.number),
                format!(
                    "its author `{}` is not one of `issues.authors`",
                    issue.author
                ),
                format!("start it yourself with `ralph issue {}`", issue.number),
            ));
        }
        if !is_allowed {
            self.notice(format!(
                "the author `{}` is not one of `issues.authors`; you started the issue yourself, so its text is used",
                issue.author
            ));
        }
        if !has_label {
            self.notice(format!(
                "the issue does not have the label `{}`",
                self.repository.labels().spec
            ));
        }
        None
    }

    /// Refuses an issue that the poller found with another status than it has now.
    fn reject_status(&self, status: Option<IssueStatus>) -> Option<IssueEnd> {
        let number = self.issue.number;
        match (self.caller, status) {
            (IssueCaller::Person, _)
            | (IssueCaller::Poller, Some(IssueStatus::Ready | IssueStatus::InProgress)) => None,
            (IssueCaller::Poller, _) => Some(refused(
                format!("issue #{number} is not worked on"),
                "it is not ready any more",
                format!("give it the label `{}`", self.repository.labels().ready),
            )),
        }
    }

    fn notice(&self, message: String) {
        let number = self.issue.number;
        self.front_end
            .report(&IssueEvent::Notice { number, message });
    }

    /// Finds the run of this issue on this machine. For an issue in progress it must be the run of the current
    /// claim.
    async fn existing_run(&self, status: Option<IssueStatus>) -> Result<ExistingRun, AppError> {
        let number = self.issue.number;
        let record = self.repository.records.load(number)?;
        let absent = match status {
            Some(IssueStatus::InProgress) => ExistingRun::Claimed,
            Some(_) | None => ExistingRun::None,
        };
        let record = if status == Some(IssueStatus::InProgress) {
            let Some(claim) = current_claim(self.repository, number).await? else {
                return Ok(ExistingRun::Foreign);
            };
            record.filter(|record| claim.run.as_ref() == Some(&record.run))
        } else {
            record
        };
        let Some(record) = record else {
            return Ok(absent);
        };
        let dir = self.repository.app.state_dir()?.run(&record.run);
        if !dir.journal().exists() {
            return Ok(absent);
        }
        if dir.is_held() {
            return Ok(ExistingRun::Held(record.run.to_string()));
        }
        let state = dir.state()?;
        if state.discarded {
            return Ok(absent);
        }
        let is_final = state.status.is_final() && !state.may_continue;
        Ok(match (is_final, status) {
            (true, Some(IssueStatus::InProgress)) => ExistingRun::Unsettled(dir, record),
            // `ralph answer` may have finished it since.
            (true, Some(IssueStatus::NeedsAttention))
                if state.status == ralph_core::run::RunStatus::Succeeded =>
            {
                ExistingRun::Unsettled(dir, record)
            }
            (false, Some(IssueStatus::InProgress)) => ExistingRun::Unfinished(record),
            // A human's edit changes the contract, so the run with the old one does not continue.
            (false, _) if normalise_body(&self.issue.body) == record.spec.last => {
                ExistingRun::Unfinished(record)
            }
            (true | false, _) => ExistingRun::None,
        })
    }

    async fn needs_attention(&self, text: &str, reason: String) -> Result<IssueEnd, AppError> {
        comment_status(self.repository, self.issue.number, text).await?;
        self.repository
            .set_status(self.issue.number, IssueStatus::NeedsAttention)
            .await?;
        Ok(IssueEnd::NeedsAttention { reason })
    }

    /// Sets the status of an issue that cannot start, unless another process has claimed it since.
    async fn set_unclaimed(&self, to: IssueStatus) -> Result<(), AppError> {
        let (number, labels) = (self.issue.number, self.repository.labels());
        let was_claimed = labels.find_status(&self.issue.labels) == Some(IssueStatus::InProgress);
        let current = self.repository.issue(number).await?;
        let is_claimed = current.is_some_and(|issue| {
            labels.find_status(&issue.labels) == Some(IssueStatus::InProgress)
        });
        if is_claimed && !was_claimed {
            return Ok(());
        }
        self.repository.set_status(number, to).await
    }

    async fn wait_for_dependencies(&self, spec: &Spec) -> Result<Option<IssueEnd>, AppError> {
        let number = self.issue.number;
        let gate = KnownIssues::default()
            .check(number, &spec.depends, self.repository)
            .await?;
        match gate {
            DependencyGate::Open => Ok(None),
            DependencyGate::Waiting(unmet) => {
                let text = blocked_text(&unmet, &self.repository.labels().done);
                comment_status(self.repository, number, &text).await?;
                self.set_unclaimed(IssueStatus::Blocked).await?;
                Ok(Some(IssueEnd::Blocked(unmet)))
            }
            DependencyGate::Cycle(cycle) => {
                let reason = report_cycle(self.repository, number, &cycle).await?;
                self.set_unclaimed(IssueStatus::NeedsAttention).await?;
                Ok(Some(IssueEnd::NeedsAttention { reason }))
            }
        }
    }

    async fn work_on_run(
        &mut self,
        existing: ExistingRun,
        spec: &Spec,
    ) -> Result<IssueEnd, AppError> {
        let is_resumed = matches!(existing, ExistingRun::Unfinished(_));
        let repository = self.repository;
        let (options, front_end) = (self.options, self.front_end);
        let prepared = async {
            if let ExistingRun::Unfinished(record) = existing {
                return Box::pin(resume_run(repository, record)).await;
            }
            let start = start_run(repository, (&self.issue, spec), options, front_end);
            Box::pin(start).await.map(Some)
        };
        let mut interrupted = self.interrupted.clone();
        let run = tokio::select! {
            prepared = prepared => prepared,
            _ = interrupted.wait_for(|interrupted| *interrupted) => {
                repository.set_status(self.issue.number, self.restored).await?;
                return Ok(IssueEnd::Interrupted);
            }
        };
        let run = match run {
            Ok(Some(run)) => run,
            Ok(None) => return held_by_another(repository, self.issue.number),
            Err(error) => return self.cannot_start(error).await,
        };
        let reopened = if is_resumed {
            Vec::new()
        } else {
            spec.done_steps()
        };
        self.report_start(&run, is_resumed, &reopened).await?;
        let dir = run.dir().clone();
        let driven = self.front_end.drive(run, self.interrupted.clone()).await;
        let Some(mut record) = repository.records.load(self.issue.number)? else {
            return Err(AppError::runtime(
                format!("the record of issue #{} is gone", self.issue.number),
                "its file was removed while the run worked",
                "start the issue again",
            ));
        };
        if let Err(error) = driven {
            let text = error_text("The run cannot continue", &error, self.issue.number);
            comment_status(repository, self.issue.number, &text).await?;
            repository
                .set_status(self.issue.number, IssueStatus::NeedsAttention)
                .await?;
            return Err(error);
        }
        Box::pin(settle(repository, &dir, &mut record, self.front_end)).await
    }

    /// Restores the issue if the user can correct the error here and now, and otherwise reports it there.
    async fn cannot_start(&self, error: AppError) -> Result<IssueEnd, AppError> {
        match self.caller {
            IssueCaller::Person => {
                let number = self.issue.number;
                self.repository.set_status(number, self.restored).await?;
                Err(error)
            }
            IssueCaller::Poller => {
                let text = error_text("ralph cannot start this issue", &error, self.issue.number);
                self.needs_attention(&text, error.to_string()).await
            }
        }
    }

    async fn report_start(
        &self,
        run: &ReadyRun,
        is_resumed: bool,
        reopened: &[String],
    ) -> Result<(), AppError> {
        let plan = &run.journal().state().plan;
        let (id, branch) = (plan.run.to_string(), plan.branch.clone());
        let verb = if is_resumed { "continues" } else { "works" };
        let mut text = format!("**In progress**: ralph {verb} on branch `{branch}`. Run `{id}`.");
        if let Some(claim) = self.repository.records.load_claim(self.issue.number)? {
            text = format!("{text} {}", claim.sentence());
        }
        if !reopened.is_empty() {
            text = format!(
                "{text}\n\nThe steps that an earlier run marked are open again ({}): this run starts from the base \
                 branch, and verifies every step itself.",
                reopened.join(", ")
            );
        }
        comment_status(self.repository, self.issue.number, &text).await?;
        self.front_end.report(&IssueEvent::Started {
            number: self.issue.number,
            title: plan.title.clone(),
            branch,
            run: id,
            is_resumed,
        });
        Ok(())
    }
}
