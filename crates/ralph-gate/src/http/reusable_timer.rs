//! The time that a head may take, without a timer for each request.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};

/// The alarm of one connection. Setting it again to a later time moves nothing until it rings.
#[derive(Clone, Default)]
pub(super) struct ReusableTimer {
    /// The one timer, while nobody waits for it.
    idle_sleep: Arc<Mutex<Option<TimerSleep>>>,
}

type TimerSleep = Pin<Box<tokio::time::Sleep>>;

impl Timer for ReusableTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        let deadline = tokio::time::Instant::from(deadline);
        let kept = self.lock_sleep().take();
        // One that rings too early is set again; one that rings too late is of no use.
        let clock = kept.filter(|clock| clock.deadline() <= deadline && !clock.is_elapsed());
        Box::pin(TimerDeadline {
            sleep: Some(clock.unwrap_or_else(|| Box::pin(tokio::time::sleep_until(deadline)))),
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

/// One setting of an alarm; it leaves the timer to the next one.
struct TimerDeadline {
    sleep: Option<TimerSleep>,
    deadline: tokio::time::Instant,
    timer: ReusableTimer,
}

impl Future for TimerDeadline {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        while let Some(clock) = &mut this.sleep {
            ready!(clock.as_mut().poll(cx));
            if clock.deadline() >= this.deadline {
                return Poll::Ready(());
            }
            clock.as_mut().reset(this.deadline);
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

    #[tokio::test(start_paused = true)]
    async fn fires_at_the_deadline_set_last() {
        let alarm = ReusableTimer::default();
        let started = alarm.now();
        for seconds in [30, 40, 50, 20, 25] {
            let mut until = alarm.sleep(Duration::from_secs(seconds));
            let polled = std::future::poll_fn(|cx| Poll::Ready(until.as_mut().poll(cx))).await;
            assert!(polled.is_pending(), "{seconds}");
        }
        alarm.sleep(Duration::from_secs(35)).await;
        assert_eq!(alarm.now() - started, Duration::from_secs(35));
        alarm.sleep(Duration::from_secs(1)).await;
        assert_eq!(alarm.now() - started, Duration::from_secs(36));
    }
}
