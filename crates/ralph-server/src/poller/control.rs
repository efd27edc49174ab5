//! Starts and stops the poller.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use ralph_app::issues::{IssueRepository, IssueRunOptions, PollOptions, poll_issues};
use ralph_app::{App, AppError};
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::time::timeout;

use super::output::PollerOutput;
use super::report::{PollerReport, PollerState};
use crate::problem::Problem;
use crate::server::STOP_TIMEOUT;

/// The poller of this server; clones refer to the same one.
#[derive(Clone)]
pub(crate) struct Poller {
    shared: Arc<PollerShared>,
}

struct PollerShared {
    app: Arc<App>,
    report: Mutex<PollerReport>,
    /// Becomes true to stop the current poller.
    stop: watch::Sender<bool>,
    /// Whether a thread works.
    is_working: watch::Sender<bool>,
}

/// A request to start the poller.
#[derive(Debug, Clone)]
pub(crate) struct PollerStart {
    /// The context of the directory whose configuration counts.
    pub(crate) app: Arc<App>,
    /// The repository instead of the directory's.
    pub(crate) repo: Option<String>,
    pub(crate) interval: Duration,
    /// The time after which no more work starts.
    pub(crate) timeout: Option<Duration>,
    /// The number of issues at the same time; the default is that of the settings.
    pub(crate) workers: Option<usize>,
    pub(crate) run: IssueRunOptions,
}

impl fmt::Debug for Poller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poller").finish_non_exhaustive()
    }
}

impl Poller {
    pub(crate) fn new(app: Arc<App>) -> Self {
        Self {
            shared: Arc::new(PollerShared {
                app,
                report: Mutex::new(PollerReport::stopped()),
                stop: watch::Sender::new(false),
                is_working: watch::Sender::new(false),
            }),
        }
    }

    pub(super) fn app(&self) -> &App {
        &self.shared.app
    }

    /// Returns the state of the poller.
    pub(crate) fn report(&self) -> PollerReport {
        self.lock().clone()
    }

    pub(super) fn update(&self, change: impl FnOnce(&mut PollerReport)) {
        change(&mut self.lock());
    }

    /// Starts the poller on a thread of its own. It works on one repository at a time.
    pub(crate) fn start(&self, start: PollerStart) -> Result<PollerReport, Problem> {
        let mut report = self.lock();
        if matches!(report.state, PollerState::Running | PollerState::Stopping) {
            return Err(Problem::new(
                StatusCode::CONFLICT,
                "poller-running",
                "the poller is running",
            )
            .with_hint("stop it first"));
        }
        *report = PollerReport {
            state: PollerState::Running,
            started_at: Some(self.shared.app.clock().now()),
            interval_seconds: start.interval.as_secs(),
            ..PollerReport::stopped()
        };
        let started = report.clone();
        drop(report);
        self.shared.stop.send_replace(false);
        self.shared.is_working.send_replace(true);
        let poller = self.clone();
        let spawned = std::thread::Builder::new()
            .name("poller".to_owned())
            .spawn(move || {
                let ended = poller.work(start);
                poller.finish(ended);
            });
        if let Err(error) = spawned {
            self.finish(Err(AppError::runtime(
                "cannot start the thread of the poller",
                error.to_string(),
                "check the limits of this user (`ulimit -a`)",
            )));
        }
        Ok(started)
    }

    fn work(&self, start: PollerStart) -> Result<(), AppError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| {
            AppError::runtime("cannot start the async runtime", error.to_string(), "")
        })?;
        runtime.block_on(async move {
            let opened = IssueRepository::open(start.repo.as_deref(), &start.app);
            let repository = Arc::new(Box::pin(opened).await?);
            let default = usize::try_from(repository.settings().workers).unwrap_or(1);
            let workers = start.workers.unwrap_or(default);
            self.update(|report| report.workers = workers);
            let options = PollOptions {
                interval: start.interval,
                timeout: start.timeout,
                workers,
                run: start.run,
            };
            let output = Arc::new(PollerOutput::new(self.clone()));
            let stopped = self.shared.stop.subscribe();
            poll_issues(repository, options, output, stopped).await?;
            Ok(())
        })
    }

    fn finish(&self, ended: Result<(), AppError>) {
        let now = self.shared.app.clock().now();
        let redactor = self.shared.app.redactor();
        self.update(|report| {
            report.ended_at = Some(now);
            report.working.clear();
            match ended {
                Ok(()) => report.state = PollerState::Stopped,
                Err(error) => {
                    report.state = PollerState::Failed;
                    report.problem = Some(error.redacted(&redactor).to_string());
                }
            }
        });
        self.shared.is_working.send_replace(false);
    }

    /// Asks the poller to stop: its runs are parked, and their issues become ready again.
    pub(crate) fn request_stop(&self) -> PollerReport {
        self.update(|report| {
            if report.state == PollerState::Running {
                report.state = PollerState::Stopping;
            }
        });
        self.shared.stop.send_replace(true);
        self.report()
    }

    /// Stops the poller and waits for the end of its work.
    pub(crate) async fn stop(&self) {
        self.request_stop();
        let mut working = self.shared.is_working.subscribe();
        let ended = timeout(STOP_TIMEOUT, working.wait_for(|is_working| !is_working));
        if ended.await.is_err() {
            tracing::warn!("the poller did not stop in time");
        }
    }

    fn lock(&self) -> MutexGuard<'_, PollerReport> {
        self.shared
            .report
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
