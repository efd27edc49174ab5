//! Waits that count the running time of this process: a timer of the runtime that expires while the
//! process is suspended would end a call or a pause too early.

use std::time::Duration;

use ralph_core::ports::Clock;

/// The timeout expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunningTimeElapsed;

/// Waits for this much running time.
pub(crate) async fn sleep(clock: &dyn Clock, limit: Duration) {
    let end = clock.monotonic().saturating_add(limit);
    loop {
        let left = end.saturating_sub(clock.monotonic());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left).await;
    }
}

/// Waits for work to end for at most this much running time.
pub(crate) async fn timeout<T>(
    clock: &dyn Clock,
    limit: Duration,
    work: impl Future<Output = T>,
) -> Result<T, RunningTimeElapsed> {
    tokio::select! {
        biased;
        done = work => Ok(done),
        () = sleep(clock, limit) => Err(RunningTimeElapsed),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Instant;

    use super::*;

    /// The clock of a process that was suspended: the running time does not advance for a while.
    struct SuspendedClock {
        start: Instant,
        stopped: Mutex<Duration>,
    }

    impl Clock for SuspendedClock {
        fn now(&self) -> jiff::Timestamp {
            jiff::Timestamp::UNIX_EPOCH
        }

        fn monotonic(&self) -> Duration {
            let mut stopped = self.stopped.lock().unwrap();
            let elapsed = self.start.elapsed();
            if elapsed < Duration::from_millis(200) {
                *stopped = elapsed;
            }
            elapsed.saturating_sub(*stopped)
        }
    }

    #[tokio::test]
    async fn a_suspension_extends_the_deadline() {
        let clock = SuspendedClock {
            start: Instant::now(),
            stopped: Mutex::default(),
        };
        let work = async {
            tokio::time::sleep(Duration::from_millis(150)).await;
            "done"
        };
        // Twenty milliseconds of running time end more than 200 ms after the start.
        let limit = Duration::from_millis(20);
        assert_eq!(timeout(&clock, limit, work).await, Ok("done"));
        let never = std::future::pending::<()>();
        assert_eq!(timeout(&clock, limit, never).await, Err(RunningTimeElapsed));
        assert!(clock.start.elapsed() >= Duration::from_millis(200));
    }
}
