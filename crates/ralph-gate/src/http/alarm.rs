//! The time that a head may take, without a timer for each request.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};

/// The alarm of one connection. Setting it again to a later time moves nothing until it rings.
#[derive(Clone, Default)]
pub(super) struct Alarm {
    /// The one timer, while nobody waits for it.
    clock: Arc<Mutex<Option<Clock>>>,
}

type Clock = Pin<Box<tokio::time::Sleep>>;

impl Timer for Alarm {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        let deadline = tokio::time::Instant::from(deadline);
        let kept = self.clock().take();
        // One that rings too early is set again; one that rings too late is of no use.
        let clock = kept.filter(|clock| clock.deadline() <= deadline && !clock.is_elapsed());
        Box::pin(Until {
            clock: Some(clock.unwrap_or_else(|| Box::pin(tokio::time::sleep_until(deadline)))),
            deadline,
            alarm: self.clone(),
        })
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into()
    }
}

impl Alarm {
    fn clock(&self) -> std::sync::MutexGuard<'_, Option<Clock>> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One setting of an alarm; it leaves the timer to the next one.
struct Until {
    clock: Option<Clock>,
    deadline: tokio::time::Instant,
    alarm: Alarm,
}

impl Future for Until {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        while let Some(clock) = &mut this.clock {
            ready!(clock.as_mut().poll(cx));
            if clock.deadline() >= this.deadline {
                return Poll::Ready(());
            }
            clock.as_mut().reset(this.deadline);
        }
        Poll::Ready(())
    }
}

impl Sleep for Until {}

impl Drop for Until {
    fn drop(&mut self) {
        *self.alarm.clock() = self.clock.take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_rings_at_the_last_time_that_it_was_set_to() {
        let alarm = Alarm::default();
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
