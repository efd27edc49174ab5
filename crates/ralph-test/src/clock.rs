//! The clock of tests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use ralph_core::ports::{Clock, SuspendedTime};

/// A clock that a test sets and advances.
#[derive(Debug)]
pub struct TestClock {
    start: Timestamp,
    /// Set for a clock that also runs by itself.
    running_since: Option<Instant>,
    state: Mutex<TestClockState>,
}

#[derive(Debug, Default)]
struct TestClockState {
    advanced: Duration,
    suspended: SuspendedTime,
}

impl TestClock {
    /// Returns a clock that shows this time until it is advanced.
    ///
    /// # Panics
    /// If the time is not written like `2026-03-01T08:00:00Z`.
    pub fn at(time: &str) -> Arc<Self> {
        Self::new(time.parse().expect("a valid timestamp"), None)
    }

    /// Returns a clock that shows the machine's time and runs.
    pub fn running() -> Arc<Self> {
        Self::new(Timestamp::now(), Some(Instant::now()))
    }

    fn new(start: Timestamp, running_since: Option<Instant>) -> Arc<Self> {
        Arc::new(Self {
            start,
            running_since,
            state: Mutex::default(),
        })
    }

    /// Advances the date and the running time.
    pub fn advance(&self, by: Duration) {
        self.state().advanced += by;
    }

    /// Simulates that the process was suspended for this long; its running time does not advance.
    pub fn suspend(&self, by: Duration) {
        self.state().suspended.stopped += by;
    }

    fn state(&self) -> MutexGuard<'_, TestClockState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        self.start + self.monotonic()
    }

    fn monotonic(&self) -> Duration {
        let run = self.running_since.map(|since| since.elapsed());
        run.unwrap_or_default() + self.state().advanced
    }

    fn suspended_time(&self) -> SuspendedTime {
        self.state().suspended
    }
}
