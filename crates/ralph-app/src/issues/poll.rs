//! Looks for issues that can be worked on, again and again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ralph_core::spec::IssueStatus;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::dependencies::KnownIssues;
use super::front_end::{IssueEnd, IssueEvent, IssueFrontEnd, WaitingIssue};
use super::repository::IssueRepository;
use super::settle::unblock_ready;
use super::start::IssueRunOptions;
use super::work::{IssueCaller, work_on_issue};
use crate::error::AppError;

/// How to poll.
#[derive(Debug, Clone)]
pub struct PollOptions {
    /// The time between two looks.
    pub interval: Duration,
    /// The time after which no more work starts.
    pub timeout: Option<Duration>,
    /// The number of issues at the same time.
    pub workers: usize,
    pub run: IssueRunOptions,
}

/// The reason why polling ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollEnd {
    /// The time is over.
    TimedOut,
    /// A signal ended it.
    Interrupted,
}

/// The longest delay after which an issue is tried again.
const MAX_DELAY: Duration = Duration::from_hours(1);

/// The end of a worker.
struct WorkerEnd {
    number: u64,
    next: NextLook,
}

/// When to look for issues after the end of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextLook {
    /// More issues may be ready, and others may be unblocked.
    AtOnce,
    AtInterval,
    /// The issue was refused or failed with an error: it is tried again after a delay that doubles.
    Delayed,
}

impl NextLook {
    fn after(result: &Result<IssueEnd, AppError>) -> Self {
        match result {
            Ok(
                IssueEnd::Done { .. }
                | IssueEnd::Failed { .. }
                | IssueEnd::NeedsAttention { .. }
                | IssueEnd::Blocked(_),
            ) => Self::AtOnce,
            Ok(IssueEnd::AlreadyDone | IssueEnd::Interrupted) => Self::AtInterval,
            Ok(IssueEnd::Refused(_)) | Err(_) => Self::Delayed,
        }
    }
}

/// The delay of an issue that could not be worked on.
struct RetryDelay {
    until: Instant,
    delay: Duration,
}

/// The issues that are being worked on, each on its own thread.
struct IssueWorkers {
    working: BTreeSet<u64>,
    delays: BTreeMap<u64, RetryDelay>,
    sender: mpsc::UnboundedSender<WorkerEnd>,
    ended: mpsc::UnboundedReceiver<WorkerEnd>,
}

impl IssueWorkers {
    /// Waits until a time, or until a worker ends after which more issues may be ready.
    async fn wait(&mut self, wake: Instant, interval: Duration) {
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(wake) => return,
                end = self.ended.recv() => {
                    let Some(end) = end else { return };
                    self.record_end(&end, interval);
                    if end.next == NextLook::AtOnce {
                        return;
                    }
                }
            }
        }
    }

    fn record_end(&mut self, end: &WorkerEnd, interval: Duration) {
        self.working.remove(&end.number);
        let before = self.delays.remove(&end.number);
        if end.next == NextLook::Delayed {
            let delay = before.map_or(interval, |before| before.delay.saturating_mul(2));
            let delay = delay.min(MAX_DELAY).max(interval);
            let until = Instant::now() + delay;
            self.delays.insert(end.number, RetryDelay { until, delay });
        }
    }

    fn is_delayed(&self, number: u64) -> bool {
        let delay = self.delays.get(&number);
        delay.is_some_and(|delay| delay.until > Instant::now())
    }
}

/// Works on ready issues until the timeout or a signal. Running work continues after the timeout; a signal ends it
/// and makes its issues ready again.
pub async fn poll_issues(
    repository: Arc<IssueRepository>,
    options: PollOptions,
    front_end: Arc<dyn IssueFrontEnd>,
    mut interrupted: watch::Receiver<bool>,
) -> Result<PollEnd, AppError> {
    front_end.report(&IssueEvent::Watching {
        repository: repository.name(),
        label: repository.labels().ready.clone(),
        authors: repository.authors(),
        interval: options.interval,
    });
    let deadline = options.timeout.map(|timeout| Instant::now() + timeout);
    let is_over = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    let (sender, ended) = mpsc::unbounded_channel();
    let mut workers = IssueWorkers {
        working: BTreeSet::new(),
        delays: BTreeMap::new(),
        sender,
        ended,
    };
    let end = loop {
        if *interrupted.borrow() {
            break PollEnd::Interrupted;
        }
        if is_over() {
            break PollEnd::TimedOut;
        }
        match look(
            &repository,
            &options,
            &front_end,
            &interrupted,
            &mut workers,
        )
        .await
        {
            Ok(waiting) => front_end.report(&IssueEvent::Looked {
                waiting,
                working: workers.working.iter().copied().collect(),
                next: options.interval,
            }),
            Err(error) => front_end.report(&IssueEvent::LookFailed(error)),
        }
        if is_over() {
            break PollEnd::TimedOut;
        }
        let next = Instant::now() + options.interval;
        let wake = deadline.map_or(next, |deadline| deadline.min(next));
        tokio::select! {
            () = workers.wait(wake, options.interval) => {}
            _ = interrupted.wait_for(|interrupted| *interrupted) => break PollEnd::Interrupted,
        }
    };
    while !workers.working.is_empty() {
        let Some(end) = workers.ended.recv().await else {
            break;
        };
        workers.working.remove(&end.number);
    }
    Ok(end)
}

/// Looks once: continues work that a process of this machine left, unblocks issues, and starts ready ones. Returns
/// the issues that wait for others.
async fn look(
    repository: &Arc<IssueRepository>,
    options: &PollOptions,
    front_end: &Arc<dyn IssueFrontEnd>,
    interrupted: &watch::Receiver<bool>,
    workers: &mut IssueWorkers,
) -> Result<Vec<WaitingIssue>, AppError> {
    let mut candidates = left_behind(repository).await?;
    let waiting = unblock_ready(repository, &mut KnownIssues::default(), &**front_end).await?;
    for issue in repository.issues_with(IssueStatus::Ready).await? {
        if repository.is_by_author(&issue) {
            candidates.push(issue.number);
        }
    }
    workers
        .delays
        .retain(|number, _| candidates.contains(number));
    for number in candidates {
        if workers.is_delayed(number) {
            continue;
        }
        if workers.working.len() >= options.workers {
            break;
        }
        if workers.working.insert(number) {
            let worker = (repository.clone(), options.run.clone(), front_end.clone());
            spawn_worker(number, worker, interrupted.clone(), workers.sender.clone())?;
        }
    }
    let waiting = waiting.into_iter();
    Ok(waiting
        .map(|(number, unmet)| WaitingIssue { number, unmet })
        .collect())
}

/// Returns the issues in progress with a claim of this machine that no process works on.
async fn left_behind(repository: &IssueRepository) -> Result<Vec<u64>, AppError> {
    let state = repository.app.state_dir()?;
    let mut left = Vec::new();
    for issue in repository.issues_with(IssueStatus::InProgress).await? {
        let claim = match repository.records.load_claim(issue.number) {
            Ok(None) => continue,
            Ok(claim) => claim,
            Err(error) => {
                tracing::warn!(%error, "an issue in progress is left alone");
                continue;
            }
        };
        // Without a run of its own, the claim must not lead to the run of an earlier one.
        let run = claim.and_then(|claim| claim.run);
        let is_held = run.is_some_and(|run| state.run(&run).is_held());
        if !is_held && repository.is_by_author(&issue) && is_unlocked(repository, issue.number)? {
            left.push(issue.number);
        }
    }
    Ok(left)
}

fn is_unlocked(repository: &IssueRepository, number: u64) -> Result<bool, AppError> {
    Ok(repository.records.lock(number)?.is_some())
}

/// Works on an issue on a thread of its own, so that the runs do not wait for each other's disk.
fn spawn_worker(
    number: u64,
    (repository, options, front_end): (
        Arc<IssueRepository>,
        IssueRunOptions,
        Arc<dyn IssueFrontEnd>,
    ),
    interrupted: watch::Receiver<bool>,
    ended: mpsc::UnboundedSender<WorkerEnd>,
) -> Result<(), AppError> {
    let work = move || {
        let result = match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime.block_on(work_on_issue(
                (&repository, number),
                IssueCaller::Poller,
                &options,
                &*front_end,
                interrupted,
            )),
            Err(error) => Err(AppError::runtime(
                "cannot start the async runtime",
                error.to_string(),
                "",
            )),
        };
        let next = NextLook::after(&result);
        if let Err(error) = result {
            let message = error.redacted(&repository.app.redactor()).to_string();
            front_end.report(&IssueEvent::Notice { number, message });
        }
        if ended.send(WorkerEnd { number, next }).is_err() {
            tracing::debug!("the poller has ended");
        }
    };
    let spawned = std::thread::Builder::new()
        .name(format!("issue {number}"))
        .spawn(work);
    spawned.map(drop).map_err(|error| {
        AppError::runtime(
            "cannot start a thread",
            error.to_string(),
            "check the limits of this user (`ulimit -a`)",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_refused_issue_is_delayed_longer_each_time() {
        let (sender, ended) = mpsc::unbounded_channel();
        let mut workers = IssueWorkers {
            working: BTreeSet::from([7]),
            delays: BTreeMap::new(),
            sender,
            ended,
        };
        let interval = Duration::from_mins(10);
        let mut end = |next| {
            workers.record_end(&WorkerEnd { number: 7, next }, interval);
            let delay = workers.delays.get(&7).map(|delay| delay.delay);
            assert_eq!(workers.is_delayed(7), delay.is_some());
            delay
        };
        for minutes in [10, 20, 40, 60, 60] {
            assert_eq!(end(NextLook::Delayed), Some(Duration::from_mins(minutes)));
        }
        assert_eq!(end(NextLook::AtOnce), None);
        let refused = AppError::runtime("a", "b", "c");
        for (result, next) in [
            (Ok(IssueEnd::Refused(refused.clone())), NextLook::Delayed),
            (Err(refused), NextLook::Delayed),
            (Ok(IssueEnd::Done { pull: None }), NextLook::AtOnce),
            (Ok(IssueEnd::AlreadyDone), NextLook::AtInterval),
        ] {
            assert_eq!(NextLook::after(&result), next);
        }
    }
}
