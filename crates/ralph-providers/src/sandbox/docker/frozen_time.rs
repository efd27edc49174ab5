//! The time in which a sandbox was frozen, which no timeout of its operations counts.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ralph_guest::running_time::{self, RunningTimeout};

/// How often a wait checks whether the sandbox is still frozen.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Measures the frozen time of a sandbox, in running time of this process.
#[derive(Debug, Default)]
pub(super) struct FrozenTime(Mutex<FrozenSpans>);

#[derive(Debug, Default)]
struct FrozenSpans {
    /// The start of the current span, if the sandbox is frozen.
    since: Option<Duration>,
    /// The length of all earlier spans.
    earlier: Duration,
}

impl FrozenTime {
    /// Records that the sandbox is frozen from now on.
    pub(super) fn begin(&self) {
        self.lock().since.get_or_insert_with(running_time::now);
    }

    /// Records that the sandbox is not frozen any more.
    pub(super) fn end(&self) {
        let mut spans = self.lock();
        if let Some(since) = spans.since.take() {
            spans.earlier += running_time::now().saturating_sub(since);
        }
    }

    /// Waits until the sandbox is not frozen.
    pub(super) async fn wait_until_thawed(&self) {
        while self.lock().since.is_some() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Waits for work to end for at most this much running time, without the frozen time.
    pub(super) async fn timeout<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = T>,
    ) -> Result<T, RunningTimeout> {
        let (started, before) = (running_time::now(), self.total());
        let expired = async {
            loop {
                let frozen = self.total().saturating_sub(before);
                let end = started.saturating_add(limit).saturating_add(frozen);
                let now = running_time::now();
                if now >= end {
                    return;
                }
                running_time::sleep_until(end.max(now + POLL_INTERVAL)).await;
            }
        };
        tokio::select! {
            biased;
            result = work => Ok(result),
            () = expired => Err(RunningTimeout),
        }
    }

    fn total(&self) -> Duration {
        let spans = self.lock();
        let current = spans
            .since
            .map(|since| running_time::now().saturating_sub(since));
        spans.earlier + current.unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, FrozenSpans> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[tokio::test]
    async fn frozen_time_extends_a_timeout() {
        let frozen = FrozenTime::default();
        let started = Instant::now();
        let limit = Duration::from_millis(200);
        let freeze = async {
            frozen.begin();
            tokio::time::sleep(Duration::from_millis(600)).await;
            frozen.end();
            std::future::pending::<()>().await;
        };
        assert_eq!(frozen.timeout(limit, freeze).await, Err(RunningTimeout));
        assert!(
            started.elapsed() >= Duration::from_millis(790),
            "{started:?}"
        );
        // Time before a wait does not extend it.
        let started = Instant::now();
        let never = std::future::pending::<()>();
        assert_eq!(frozen.timeout(limit, never).await, Err(RunningTimeout));
        assert!(
            started.elapsed() < Duration::from_millis(600),
            "{started:?}"
        );
    }

    #[tokio::test]
    async fn a_wait_ends_when_the_sandbox_is_thawed() {
        let frozen = FrozenTime::default();
        frozen.wait_until_thawed().await;
        frozen.begin();
        let waiting = frozen.wait_until_thawed();
        assert!(
            tokio::time::timeout(Duration::from_millis(150), waiting)
                .await
                .is_err()
        );
        frozen.end();
        frozen.wait_until_thawed().await;
    }
}
