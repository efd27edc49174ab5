//! The operations of this process.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use ralph_app::{App, AppError};
use ralph_core::secret::Redactor;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::timeout;

use super::entry::{Operation, OperationKind, OperationState};
use super::handle::OperationHandle;
use crate::problem::Problem;
use crate::server::STOP_TIMEOUT;

/// The most operations at the same time.
const MAX_RUNNING: usize = 4;

/// The number of operations that are remembered.
const MAX_REMEMBERED: usize = 32;

/// The longest operation.
const MAX_DURATION: Duration = Duration::from_hours(2);

/// The operations of this process; clones share them.
#[derive(Clone)]
pub(crate) struct Operations {
    shared: Arc<OperationsState>,
}

struct OperationsState {
    app: Arc<App>,
    next: AtomicU64,
    entries: Mutex<VecDeque<OperationEntry>>,
    /// Counts changes, for requests that wait for one.
    changes: watch::Sender<u64>,
}

struct OperationEntry {
    operation: Operation,
    cancel: watch::Sender<bool>,
}

impl fmt::Debug for Operations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operations").finish_non_exhaustive()
    }
}

impl Operations {
    pub(crate) fn new(app: Arc<App>) -> Self {
        Self {
            shared: Arc::new(OperationsState {
                app,
                next: AtomicU64::new(1),
                entries: Mutex::default(),
                changes: watch::Sender::new(0),
            }),
        }
    }

    pub(super) fn redactor(&self) -> Redactor {
        self.shared.app.redactor()
    }

    /// Starts an operation on a thread for blocking work.
    pub(crate) fn start<F>(
        &self,
        kind: OperationKind,
        work: impl FnOnce(OperationHandle) -> F + Send + 'static,
    ) -> Result<Operation, Problem>
    where
        F: Future<Output = Result<(), AppError>>,
    {
        let (cancel, cancelled) = watch::channel(false);
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let id = format!("op-{number}");
        let operation = Operation {
            id: id.clone(),
            kind,
            state: OperationState::Running,
            started_at: self.shared.app.clock().now(),
            ended_at: None,
            checks: Vec::new(),
            notes: Vec::new(),
            log: Vec::new(),
            result: None,
            problem: None,
        };
        self.insert(OperationEntry {
            operation: operation.clone(),
            cancel,
        })?;
        let handle = OperationHandle {
            id: id.clone(),
            operations: self.clone(),
            cancelled: cancelled.clone(),
        };
        let operations = self.clone();
        let runtime = Handle::current();
        tokio::task::spawn_blocking(move || {
            let work = timeout(MAX_DURATION, work(handle));
            let ended = runtime.block_on(work).unwrap_or_else(|_| {
                let hours = MAX_DURATION.as_secs() / 3600;
                Err(AppError::runtime(
                    "the operation was ended",
                    format!("it took longer than {hours} hours"),
                    "start it again",
                ))
            });
            operations.finish(&id, ended, *cancelled.borrow());
        });
        Ok(operation)
    }

    fn insert(&self, entry: OperationEntry) -> Result<(), Problem> {
        let mut entries = self.lock();
        let is_running = |entry: &&OperationEntry| entry.operation.state == OperationState::Running;
        if entries.iter().filter(is_running).count() >= MAX_RUNNING {
            return Err(Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too-many-operations",
                format!("{MAX_RUNNING} operations are running"),
            )
            .with_hint("wait for one of them, or cancel one"));
        }
        if entries.len() == MAX_REMEMBERED {
            let oldest = entries.iter().position(|entry| !is_running(&entry));
            oldest.and_then(|oldest| entries.remove(oldest));
        }
        entries.push_back(entry);
        Ok(())
    }

    fn finish(&self, id: &str, ended: Result<(), AppError>, is_cancelled: bool) {
        let now = self.shared.app.clock().now();
        let redactor = self.redactor();
        self.update(id, |operation| {
            operation.ended_at = Some(now);
            operation.state = match &ended {
                Ok(()) => OperationState::Succeeded,
                Err(_) if is_cancelled => OperationState::Cancelled,
                Err(_) => OperationState::Failed,
            };
            operation.problem = ended.err().map(|error| error.redacted(&redactor).into());
        });
    }

    /// Changes an operation, and wakes requests that wait for it.
    pub(super) fn update(&self, id: &str, change: impl FnOnce(&mut Operation)) {
        let mut entries = self.lock();
        let found = entries.iter_mut().find(|entry| entry.operation.id == id);
        if let Some(entry) = found {
            change(&mut entry.operation);
        }
        drop(entries);
        self.shared.changes.send_modify(|count| *count += 1);
    }

    /// Returns all operations, newest first.
    pub(crate) fn list(&self) -> Vec<Operation> {
        let entries = self.lock();
        let operations = entries.iter().rev();
        operations.map(|entry| entry.operation.clone()).collect()
    }

    /// Returns an operation.
    pub(crate) fn get(&self, id: &str) -> Option<Operation> {
        let entries = self.lock();
        let found = entries.iter().find(|entry| entry.operation.id == id);
        found.map(|entry| entry.operation.clone())
    }

    /// Returns an operation when it has ended, or after a time.
    pub(crate) async fn wait(&self, id: &str, most: Duration) -> Option<Operation> {
        let mut changes = self.shared.changes.subscribe();
        let is_running = |operation: &Option<Operation>| {
            let state = operation.as_ref().map(|operation| operation.state);
            state == Some(OperationState::Running)
        };
        let waited = timeout(most, async {
            loop {
                changes.mark_unchanged();
                if !is_running(&self.get(id)) || changes.changed().await.is_err() {
                    return;
                }
            }
        });
        if waited.await.is_err() {
            tracing::debug!(id, "the operation is still running");
        }
        self.get(id)
    }

    /// Cancels an operation, which ends soon. Returns whether it exists.
    pub(crate) fn cancel(&self, id: &str) -> bool {
        let entries = self.lock();
        let found = entries.iter().find(|entry| entry.operation.id == id);
        found.is_some_and(|entry| {
            entry.cancel.send_replace(true);
            true
        })
    }

    /// Cancels all operations and waits for their end.
    pub(crate) async fn stop(&self) {
        let ids: Vec<String> = self
            .lock()
            .iter()
            .map(|entry| entry.operation.id.clone())
            .collect();
        for id in &ids {
            self.cancel(id);
        }
        let ended = timeout(STOP_TIMEOUT, async {
            for id in &ids {
                self.wait(id, STOP_TIMEOUT).await;
            }
        });
        if ended.await.is_err() {
            tracing::warn!("an operation did not end in time");
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<OperationEntry>> {
        self.shared
            .entries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs work until it ends or is cancelled.
pub(crate) async fn until_cancelled<T>(
    mut cancelled: watch::Receiver<bool>,
    work: impl Future<Output = Result<T, AppError>>,
) -> Result<T, AppError> {
    tokio::select! {
        done = work => done,
        _ = cancelled.wait_for(|cancelled| *cancelled) => Err(AppError::runtime(
            "the operation was ended",
            "it was cancelled",
            "",
        )),
    }
}
