//! Works on one issue, from its checks to the record of its result.

use std::sync::Arc;

use ralph_core::ports::HostIssue;
use ralph_core::spec::{IssueStatus, Spec, normalise_body};
use ralph_engine::store::RunDir;
use tokio::sync::watch;

use super::claim::{Claim, claim_issue};
use super::comments::{comment_status, error_text, findings_text, issue_list};
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
    let end = match repository.issue(number).await? {
        Some(issue) => {
            let work = IssueWork {
                repository,
                issue,
                caller,
                options,
                front_end,
                interrupted,
            };
            Box::pin(work.run()).await?
        }
        None => refused(
            format!("there is no issue #{number} in `{}`", repository.name()),
            "the number does not exist, or is a pull request",
            "check the number, or the repository with `ralph scm check`",
        ),
    };
    front_end.report(&IssueEvent::Ended {
        number,
        end: end.clone(),
    });
    Ok(end)
}

fn refused(what: String, why: impl Into<String>, fix: impl Into<String>) -> IssueEnd {
    IssueEnd::Refused(AppError::runtime(what, why, fix))
}

/// The run that continues, or its absence.
enum ExistingRun {
    /// An unfinished run of this issue, which no process works on.
    Unfinished(IssueRecord),
    /// A run that ended, or that a process finished, without a record in the issue.
    Unsettled(RunDir, IssueRecord),
    /// A process works on it.
    Held(String),
    /// A new run is needed.
    None,
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
        let existing = self.existing_run(status)?;
        match &existing {
            ExistingRun::Held(run) => {
                return Ok(refused(
                    format!("issue #{} is in progress", self.issue.number),
                    format!("another process works on its run `{run}`"),
                    format!("follow it with `ralph attach {run}`"),
                ));
            }
            ExistingRun::None if status == Some(IssueStatus::InProgress) => {
                return Ok(refused(
                    format!("issue #{} is in progress", self.issue.number),
                    "another machine works on it, or its process ended there",
                    format!(
                        "continue it there, or start over: replace the label `{}` by `{}`",
                        labels.in_progress, labels.ready
                    ),
                ));
            }
            ExistingRun::Unsettled(..) | ExistingRun::Unfinished(_) | ExistingRun::None => {}
        }
        if let ExistingRun::Unsettled(dir, mut record) = existing {
            return Box::pin(settle(self.repository, &dir, &mut record, self.front_end)).await;
        }
        let spec = match Spec::parse(self.issue.number, &self.issue.title, &self.issue.body) {
            Ok(spec) => spec,
            Err(findings) => {
                let (why, _) = findings.first().map(describe_finding).unwrap_or_default();
                return self.needs_attention(&findings_text(&findings), why).await;
            }
        };
        if let Some(end) = self.wait_for_dependencies(&spec).await? {
            return Ok(end);
        }
        // A resumed issue already belongs to this machine, and the lock of its run decides.
        if status != Some(IssueStatus::InProgress)
            && claim_issue(self.repository, &self.issue).await? == Claim::Lost
        {
            return Ok(refused(
                format!("issue #{} is in progress", self.issue.number),
                "another process claimed it at the same time",
                "wait until it is done",
            ));
        }
        Box::pin(self.work_on_run(existing, &spec)).await
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

    fn notice(&self, message: String) {
        let number = self.issue.number;
        self.front_end
            .report(&IssueEvent::Notice { number, message });
    }

    /// Finds the last run of this issue on this machine.
    fn existing_run(&self, status: Option<IssueStatus>) -> Result<ExistingRun, AppError> {
        let Some(record) = self.repository.records.load(self.issue.number)? else {
            return Ok(ExistingRun::None);
        };
        let state_dir = self.repository.app.state_dir()?;
        let dir = state_dir.run(&record.run);
        if !dir.journal().exists() {
            return Ok(ExistingRun::None);
        }
        if dir.is_held() {
            return Ok(ExistingRun::Held(record.run.to_string()));
        }
        let state = dir.state()?;
        if state.discarded {
            return Ok(ExistingRun::None);
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

    async fn wait_for_dependencies(&self, spec: &Spec) -> Result<Option<IssueEnd>, AppError> {
        let number = self.issue.number;
        let gate = KnownIssues::default()
            .check(number, &spec.depends, self.repository)
            .await?;
        match gate {
            DependencyGate::Open => Ok(None),
            DependencyGate::Waiting(on) => {
                let text = format!(
                    "**Blocked**: waits until {} {} the label `{}`. ralph makes this issue ready then.",
                    issue_list(&on),
                    if on.len() == 1 { "has" } else { "have" },
                    self.repository.labels().done
                );
                comment_status(self.repository, number, &text).await?;
                self.repository
                    .set_status(self.issue.number, IssueStatus::Blocked)
                    .await?;
                Ok(Some(IssueEnd::Blocked { on }))
            }
            DependencyGate::Cycle(cycle) => {
                let reason = report_cycle(self.repository, number, &cycle).await?;
                self.repository
                    .set_status(self.issue.number, IssueStatus::NeedsAttention)
                    .await?;
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
            Box::pin(start_run(
                repository,
                (&self.issue, spec),
                options,
                front_end,
            ))
            .await
        };
        let mut interrupted = self.interrupted.clone();
        let run = tokio::select! {
            prepared = prepared => prepared,
            _ = interrupted.wait_for(|interrupted| *interrupted) => {
                repository.set_status(self.issue.number, self.restored_status()).await?;
                return Ok(IssueEnd::Interrupted);
            }
        };
        let run = match run {
            Ok(run) => run,
            Err(error) => return self.cannot_start(error).await,
        };
        self.report_start(&run, is_resumed).await?;
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
            let text = error_text("The run cannot continue", &error);
            comment_status(repository, self.issue.number, &text).await?;
            repository
                .set_status(self.issue.number, IssueStatus::NeedsAttention)
                .await?;
            return Err(error);
        }
        Box::pin(settle(repository, &dir, &mut record, self.front_end)).await
    }

    /// Returns the status of an issue whose work did not start.
    fn restored_status(&self) -> IssueStatus {
        match self.repository.labels().find_status(&self.issue.labels) {
            Some(before @ (IssueStatus::NeedsAttention | IssueStatus::InProgress)) => before,
            Some(IssueStatus::Ready | IssueStatus::Done | IssueStatus::Blocked) | None => {
                IssueStatus::Ready
            }
        }
    }

    /// Restores the issue if the user can correct the error here and now, and otherwise reports it there.
    async fn cannot_start(&self, error: AppError) -> Result<IssueEnd, AppError> {
        match self.caller {
            IssueCaller::Person => {
                let number = self.issue.number;
                self.repository
                    .set_status(number, self.restored_status())
                    .await?;
                Err(error)
            }
            IssueCaller::Poller => {
                let text = error_text("ralph cannot start this issue", &error);
                self.needs_attention(&text, error.to_string()).await
            }
        }
    }

    async fn report_start(&self, run: &ReadyRun, is_resumed: bool) -> Result<(), AppError> {
        let plan = &run.journal().state().plan;
        let (id, branch) = (plan.run.to_string(), plan.branch.clone());
        let verb = if is_resumed { "continues" } else { "works" };
        let text = format!("**In progress**: ralph {verb} on branch `{branch}`. Run `{id}`.");
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
