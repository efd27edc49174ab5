//! Drives a run on a thread and runtime of its own.
//!
//! The engine syncs files on its own thread. With a thread each, the runs of one process do not
//! wait for each other's disk, and a panic ends only its own run.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use ralph_core::run::RunStatus;
use tokio::runtime::Builder;
use tokio::sync::{oneshot, watch};

use crate::error::RunError;
use crate::journal::Journal;
use crate::run::drive;
use crate::services::Services;
use crate::store::RunDir;

/// A run on its own thread.
pub struct RunThread {
    ended: oneshot::Receiver<Result<RunStatus, RunError>>,
}

impl RunThread {
    /// Waits until the run ends, as [`drive`] does. A panic of the run is returned as an error.
    pub async fn join(self) -> Result<RunStatus, RunError> {
        self.ended
            .await
            .unwrap_or_else(|_| Err(RunError::Thread("it ended without a result".into())))
    }
}

/// Starts to [`drive`] a run on a thread of its own. The thread works until the run ends, even if
/// the returned handle is dropped; `interrupt` ends it early.
pub fn spawn_run(
    dir: RunDir,
    journal: Journal,
    services: Services,
    interrupt: watch::Receiver<bool>,
) -> Result<RunThread, RunError> {
    let name = format!("run {}", journal.state().plan.run);
    let (sender, ended) = oneshot::channel();
    let run = journal.state().plan.run.clone();
    let work = move || {
        // Entered for the whole thread: every task on it works for this run.
        let _run = tracing::info_span!("run", %run).entered();
        let driven = block_on_isolated(drive(dir, journal, services, interrupt));
        if sender.send(driven.and_then(|ended| ended)).is_err() {
            tracing::debug!("no task waits for the result of the run");
        }
    };
    thread::Builder::new()
        .name(name)
        .spawn(work)
        .map_err(|error| RunError::Thread(error.to_string()))?;
    Ok(RunThread { ended })
}

/// Waits for work on a runtime of this thread. A panic is returned as an error.
pub fn block_on_isolated<T>(work: impl Future<Output = T>) -> Result<T, RunError> {
    let result: thread::Result<io::Result<T>> = catch_unwind(AssertUnwindSafe(|| {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(runtime.block_on(work))
    }));
    match result {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(RunError::Thread(error.to_string())),
        Err(panic) => Err(RunError::Thread(panic_message(&*panic))),
    }
}

/// Returns the message of a panic, if it has one.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    format!("it panicked: {}", text.unwrap_or("no message"))
}
