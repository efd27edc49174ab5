//! A timer for request heads that is shared by all requests of a connection.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};

/// The timer of one connection. Moving the deadline to a later time does not touch the underlying
/// timer until it fires.
#[derive(Clone, Default)]
pub(super) struct ReusableTimer {
    /// The underlying timer, while it is not in use.
    idle_sleep: Arc<Mutex<Option<TimerSleep>>>,
}

type TimerSleep = Pin<Box<tokio::time::Sleep>>;

impl Timer for ReusableTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        let deadline = tokio::time::Instant::from(deadline);
        let idle = self.lock_sleep().take();
        // A timer that fires too early is reset then; one that fires too late cannot be used.
        let reusable = idle.filter(|sleep| sleep.deadline() <= deadline && !sleep.is_elapsed());
        Box::pin(TimerDeadline {
            sleep: Some(reusable.unwrap_or_else(|| Box::pin(tokio::time::sleep_until(deadline)))),
            deadline,
            timer: self.clone(),
        })
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into()
    }
}

impl ReusableTimer {
    fn lock_sleep(&self) -> std::sync::MutexGuard<'_, Option<TimerSleep>> {
        self.idle_sleep
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// One deadline; returns the timer for the next one when dropped.
struct TimerDeadline {
    sleep: Option<TimerSleep>,
    deadline: tokio::time::Instant,
    timer: ReusableTimer,
}

impl Future for TimerDeadline {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        while let Some(sleep) = &mut this.sleep {
            ready!(sleep.as_mut().poll(cx));
            if sleep.deadline() >= this.deadline {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(this.deadline);
        }
        Poll::Ready(())
    }
}

impl Sleep for TimerDeadline {}

impl Drop for TimerDeadline {
    fn drop(&mut self) {
        *self.timer.lock_sleep() = self.sleep.take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn set_and_drop(timer: &ReusableTimer, duration: Duration) -> Poll<()> {
        let mut sleep = timer.sleep(duration);
        std::future::poll_fn(|cx| Poll::Ready(sleep.as_mut().poll(cx))).await
    }

    #[tokio::test]
    async fn fires_at_the_deadline_set_last() {
        let timer = ReusableTimer::default();
        let started = timer.now();
        for minutes in [30, 40, 50, 20, 25] {
            let polled = set_and_drop(&timer, Duration::from_secs(60 * minutes)).await;
            assert!(polled.is_pending(), "{minutes}");
        }
        let soon = Duration::from_millis(20);
        timer.sleep(soon).await;
        assert!(timer.now() - started >= soon);
    }

    #[tokio::test]
    async fn an_earlier_deadline_is_moved_to_the_later_one() {
        let timer = ReusableTimer::default();
        let (earlier, later) = (Duration::from_millis(20), Duration::from_millis(60));
        // Ready only on a machine so busy that the deadline passes before the first poll.
        let _: Poll<()> = set_and_drop(&timer, earlier).await;
        let started = timer.now();
        timer.sleep(later).await;
        assert!(timer.now() - started >= later);
    }
}
