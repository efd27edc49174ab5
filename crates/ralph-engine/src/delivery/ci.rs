//! Waits for the checks of a verified commit at the source host. The time of the wait does not count
//! as wall time.

use std::sync::Arc;
use std::time::Duration;

use ralph_core::event::DeliveryEvent;
use ralph_core::id::CommitId;
use ralph_core::plan::Delivery;
use ralph_core::ports::{CheckReport, HostCheck, PullRequest, PullState, Scm};
use ralph_core::publish::CiPolicy;
use ralph_core::publish::ci::{CiDecision, CiOutcome, CiWatch, count, decide, failed_checks};
use ralph_core::run::{CiWait, PauseReason, RunStatus};

use super::commit_status::without_own_status;
use super::host_request::{HostPatience, host_request, policy};
use super::reviews::take_reviews;
use super::surroundings::{LookOccasion, inspect_surroundings};
use crate::controls::PendingRequest;
use crate::error::RunError;
use crate::immediate_commands::handle_control_event;
use crate::pause::handle_pending_input;
use crate::run::Run;
use crate::steps::{WAIT_POLL_INTERVAL, elapsed};
use crate::user_commands::run_pending_commands;
use crate::worker_wait::enter_status;

/// The most failed checks that are named.
const MAX_NAMED: usize = 20;
/// The most failed checks whose output is read.
const MAX_READ: usize = 5;
/// The most bytes of the output of one check.
const MAX_OUTPUT: usize = 6 << 10;
/// The most characters of the name of a check.
const MAX_NAME_CHARS: usize = 100;
/// How often the head of the pull request is read until it is the verified commit.
const HEAD_ATTEMPTS: u32 = 5;
/// The longest delay between these attempts.
const HEAD_DELAY: Duration = Duration::from_secs(5);

/// The consequence of the wait for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CiVerdict {
    /// The run may succeed.
    Success,
    /// Success is refused for these reasons, and the run iterates again.
    Refused(Vec<String>),
    /// The user has to act.
    Pause(PauseReason),
}

/// The wait for the checks of one commit.
struct CiWaiter {
    policy: CiPolicy,
    commit: CommitId,
    round: u32,
    patience: HostPatience,
    watch: CiWatch,
    polls: u32,
    waited: Duration,
}

/// Returns why a run must not succeed yet: the user changed the task, or sent something that the last
/// prompt does not contain.
pub(super) fn unread_input(run: &Run) -> Option<String> {
    let state = run.recorder.state();
    let reason = if state.wanted_contract.is_some() {
        "the task was changed before the run succeeded"
    } else if state.has_unread_input() {
        "a message of the user is not read yet"
    } else {
        return None;
    };
    Some(reason.into())
}

/// Waits for the checks of a commit, if the source host has checks.
pub(super) async fn await_checks(run: &mut Run, head: &CommitId) -> Result<CiVerdict, RunError> {
    let state = run.recorder.state();
    let has_pull_request = state.plan.delivery == Delivery::PullRequest;
    if run.services.scm.source_host().is_none() || !has_pull_request {
        return Ok(CiVerdict::Success);
    }
    let mut waiter = CiWaiter {
        policy: policy(run).ci,
        commit: head.clone(),
        round: state.host.failed_rounds + 1,
        patience: HostPatience::default(),
        watch: CiWatch::default(),
        polls: 0,
        waited: Duration::ZERO,
    };
    waiter.enter(run).await?;
    run.recorder.files.sync()?;
    let verdict = waiter.wait(run).await?;
    let verifying = RunStatus::Verifying;
    enter_status(&mut run.recorder.journal, &mut run.controls, verifying).await?;
    Ok(verdict)
}

impl CiWaiter {
    /// Records the status, with the time at which the wait ends at the latest.
    async fn enter(&self, run: &mut Run) -> Result<(), RunError> {
        let left = self.policy.timeout.saturating_sub(self.waited);
        let waiting = RunStatus::WaitingCi(CiWait {
            commit: self.commit.clone(),
            round: self.round,
            until: run.recorder.clock.now() + left,
        });
        enter_status(&mut run.recorder.journal, &mut run.controls, waiting).await
    }

    async fn wait(&mut self, run: &mut Run) -> Result<CiVerdict, RunError> {
        loop {
            let commit = &self.commit.clone();
            let report = host_request(
                run,
                &mut self.patience,
                move |scm: Arc<dyn Scm>| async move {
                    match scm.source_host() {
                        Some(host) => host.checks(commit).await,
                        None => Ok(CheckReport::default()),
                    }
                },
            )
            .await?;
            let report = without_own_status(report);
            self.polls = self.polls.saturating_add(1);
            self.record_progress(run, &report)?;
            if let Some(outcome) = self.watch.judge(&report, &self.policy, self.waited) {
                return self.conclude(run, &report, outcome).await;
            }
            let reasons = take_reviews(run).await?;
            if !reasons.is_empty() {
                return Ok(CiVerdict::Refused(reasons));
            }
            inspect_surroundings(run, LookOccasion::Regular).await?;
            if let Some(reason) = run.surroundings.take_pause() {
                return Ok(CiVerdict::Pause(reason));
            }
            let delay = self.policy.poll_delay(self.polls);
            self.waited += sleep_until_due(run, delay).await?;
            if let Some(reason) = self.handle_requests(run).await? {
                return Ok(CiVerdict::Refused(vec![reason]));
            }
        }
    }

    /// Handles a pause, and returns why the wait ends for another iteration, if the user wants one.
    async fn handle_requests(&self, run: &mut Run) -> Result<Option<String>, RunError> {
        if run.controls.pending == Some(PendingRequest::Pause) {
            handle_pending_input(run).await?;
            self.enter(run).await?;
        }
        if run
            .controls
            .pending
            .take_if(|request| *request == PendingRequest::Rotate)
            .is_some()
        {
            let reason = "the user asked for a fresh iteration before the checks completed";
            return Ok(Some(reason.into()));
        }
        Ok(unread_input(run))
    }

    fn record_progress(&self, run: &mut Run, report: &CheckReport) -> Result<(), RunError> {
        let progress = (self.commit.clone(), count(report));
        if run.recorder.state().host.progress.as_ref() == Some(&progress) {
            return Ok(());
        }
        let (commit, counts) = progress;
        run.recorder
            .append(DeliveryEvent::CiProgress { commit, counts })
    }

    /// Records the result. The output of failed checks is logged first.
    async fn conclude(
        &mut self,
        run: &mut Run,
        report: &CheckReport,
        outcome: CiOutcome,
    ) -> Result<CiVerdict, RunError> {
        let checks: Vec<HostCheck> = failed_checks(report).cloned().collect();
        let failed: Vec<String> = checks.iter().take(MAX_NAMED).map(short_name).collect();
        let mut decision = decide(outcome, &self.policy, self.round);
        let blocked = match decision {
            CiDecision::Success => confirm_pull_head(run, &self.commit).await?,
            CiDecision::Retry | CiDecision::Pause => None,
        };
        if blocked.is_some() {
            decision = CiDecision::Pause;
        }
        if self.policy.required {
            self.log_failures(run, &checks).await?;
        }
        let line = describe_outcome(outcome, &failed);
        run.recorder
            .log_activity(&format!("at the source host: {line}"))?;
        run.recorder.append(DeliveryEvent::CiFinished {
            commit: self.commit.clone(),
            round: self.round,
            outcome,
            failed,
            counts: count(report),
            decision,
        })?;
        if let Some(reason) = blocked {
            return Ok(CiVerdict::Pause(reason));
        }
        Ok(match decision {
            CiDecision::Success => CiVerdict::Success,
            CiDecision::Retry => CiVerdict::Refused(vec![format!(
                "at the source host: {line} (round {} of {}); errors.log has the end of their output",
                self.round, self.policy.max_rounds
            )]),
            CiDecision::Pause => CiVerdict::Pause(self.pause(outcome, &line)),
        })
    }

    fn pause(&self, outcome: CiOutcome, line: &str) -> PauseReason {
        let (rounds, fix) = match outcome {
            CiOutcome::Failed => (
                format!(" in round {} of {}", self.round, self.policy.max_rounds),
                "repair or repeat them at the source host",
            ),
            CiOutcome::Missing => (
                String::new(),
                "enable checks for the branch at the source host, or set `ci.required: false`",
            ),
            CiOutcome::TimedOut => (String::new(), "wait for them, or raise `ci.timeout`"),
            CiOutcome::Passed => (String::new(), "check the pull request"),
        };
        PauseReason::Broken {
            what: format!("`ci.required` is set, but {line}{rounds}"),
            fix: format!("{fix}, then `ralph resume`, which reads them again"),
        }
    }

    /// Logs the end of the output of failed checks, which is data of programs.
    async fn log_failures(&mut self, run: &mut Run, checks: &[HostCheck]) -> Result<(), RunError> {
        for check in checks.iter().take(MAX_READ) {
            let output = host_request(
                run,
                &mut self.patience,
                move |scm: Arc<dyn Scm>| async move {
                    match scm.source_host() {
                        Some(host) => match host.failure_output(check, MAX_OUTPUT).await {
                            Err(error) if !is_transient(&error) => {
                                Ok(format!("(its output cannot be read: {error})"))
                            }
                            output => output,
                        },
                        None => Ok(String::new()),
                    }
                },
            )
            .await?;
            let name = short_name(check);
            let start = output.floor_char_boundary(output.len().saturating_sub(MAX_OUTPUT));
            let tail = output.get(start..).unwrap_or_default();
            run.recorder.log_error(&format!(
                "check `{name}` failed at the source host ({}); the end of its output: {tail}",
                check.state
            ))?;
        }
        run.recorder.files.sync()?;
        Ok(())
    }
}

fn is_transient(error: &ralph_core::ports::ScmError) -> bool {
    matches!(error, ralph_core::ports::ScmError::Host(error) if error.kind.is_transient())
}

/// Returns a check's name without controls and of limited length.
fn short_name(check: &HostCheck) -> String {
    let name = check.name.chars();
    let name = name.map(|c| if c.is_control() || c == '`' { ' ' } else { c });
    name.take(MAX_NAME_CHARS).collect()
}

/// Describes the result of the checks in one line.
pub(super) fn describe_outcome(outcome: CiOutcome, failed: &[String]) -> String {
    match outcome {
        CiOutcome::Passed => "all checks passed".into(),
        CiOutcome::Failed => {
            let verb = if failed.len() == 1 { "check" } else { "checks" };
            format!("{verb} `{}` failed", failed.join("`, `"))
        }
        CiOutcome::Missing => "no check was started".into(),
        CiOutcome::TimedOut => "the checks did not complete in time".into(),
    }
}

/// Waits until the next request is due, or until the user wants something. Returns the time.
async fn sleep_until_due(run: &mut Run, delay: Duration) -> Result<Duration, RunError> {
    let started = elapsed(&run.recorder);
    run.controls.resumed = false;
    loop {
        let waited = elapsed(&run.recorder).saturating_sub(started);
        let left = delay.saturating_sub(waited);
        let is_interrupted =
            run.controls.resumed || run.controls.pending.is_some() || unread_input(run).is_some();
        if left.is_zero() || is_interrupted {
            return Ok(waited);
        }
        tokio::select! {
            () = tokio::time::sleep(left.min(WAIT_POLL_INTERVAL)) => {}
            event = run.controls.next() => handle_control_event(&mut run.recorder.journal, &mut run.controls, event)?,
        }
        run_pending_commands(run).await?;
    }
}

/// Returns why the user has to act because the pull request is not at the verified commit.
async fn confirm_pull_head(
    run: &mut Run,
    head: &CommitId,
) -> Result<Option<PauseReason>, RunError> {
    let Some(pull) = run.recorder.state().pull.clone() else {
        return Ok(None);
    };
    let delay = policy(run).ci.interval.min(HEAD_DELAY);
    let mut patience = HostPatience::default();
    let mut found = pull.clone();
    let pull = &pull;
    for attempt in 0..HEAD_ATTEMPTS {
        if attempt > 0 {
            // The host updates a pull request some time after a push.
            sleep_until_due(run, delay).await?;
            handle_pending_input(run).await?;
            if unread_input(run).is_some() {
                // Success is refused in any case.
                return Ok(None);
            }
        }
        found = host_request(run, &mut patience, move |scm: Arc<dyn Scm>| async move {
            match scm.source_host() {
                Some(host) => host.pull(pull.number).await,
                None => Ok(pull.clone()),
            }
        })
        .await?;
        if found.head == *head {
            return Ok(None);
        }
    }
    let branch = &run.recorder.state().plan.branch;
    Ok(Some(other_head(&found, head, branch)))
}

/// Returns the pause for a pull request that is not at the verified commit.
fn other_head(pull: &PullRequest, head: &CommitId, branch: &str) -> PauseReason {
    let PullRequest { number, .. } = pull;
    let (at, head) = (pull.head.short(), head.short());
    let ended = |verb: &str| {
        format!(
            "pull request {number} was {verb} at commit {at}, before the last commits of the run: \
             the verified commit is {head}"
        )
    };
    let (what, fix) = match pull.state {
        PullState::Merged => (
            ended("merged"),
            format!(
                "open another pull request for branch `{branch}`, and end the run with `ralph stop`"
            ),
        ),
        PullState::Closed => (
            ended("closed"),
            "reopen it, then `ralph resume`, which reads it again".into(),
        ),
        PullState::Draft | PullState::Open => (
            format!("pull request {number} is at commit {at}, but the verified commit is {head}"),
            format!(
                "move branch `{branch}` back to the verified commit, then `ralph resume`, or review \
                 its new commits and merge it yourself"
            ),
        ),
    };
    PauseReason::Broken { what, fix }
}
