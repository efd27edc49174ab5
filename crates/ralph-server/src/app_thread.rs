//! Runs functions of the application layer for requests.
//!
//! These functions read files and wait for processes on the thread that calls them, and their futures
//! stay on one thread. So each runs on a thread of its own, and the threads of the server are never
//! blocked.

use std::time::Duration;

use ralph_app::AppError;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The number of requests that may use the application layer at the same time.
const MAX_CALLS: usize = 64;

static CALLS: Semaphore = Semaphore::const_new(MAX_CALLS);

/// Calls a function of the application layer on a thread for blocking work, and waits for its result.
/// The work continues if the caller is dropped.
pub(crate) async fn call_app<T, F>(work: impl FnOnce() -> F + Send + 'static) -> Result<T, AppError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, AppError>>,
{
    let permit = CALLS.acquire().await;
    let handle = Handle::current();
    let called = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        handle.block_on(work())
    });
    called.await.unwrap_or_else(|error| {
        Err(AppError::runtime(
            "the request failed",
            format!("its thread ended: {error}"),
            "see the diagnostics log",
        ))
    })
}

/// Calls a function of the application layer, and ends its work after a time.
pub(crate) async fn call_app_within<T, F>(
    most: Duration,
    work: impl FnOnce() -> F + Send + 'static,
) -> Result<T, AppError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, AppError>>,
{
    call_app(move || async move {
        timeout(most, work()).await.unwrap_or_else(|_| {
            Err(AppError::runtime(
                "the request was ended",
                format!("it took longer than {} seconds", most.as_secs()),
                "try again",
            ))
        })
    })
    .await
}
