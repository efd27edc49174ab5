//! The clock of the machine.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ralph_core::ports::{Clock, SuspendedTime};
use ralph_guest::running_time;

/// Reports the machine's time, and the running time of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl SystemClock {
    /// Returns the clock of this process.
    pub fn new() -> Self {
        Self
    }
}

impl Clock for SystemClock {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }

    fn monotonic(&self) -> Duration {
        running_time::now()
    }

    fn suspended_time(&self) -> SuspendedTime {
        let running_time::ProcessAbsence { stopped, asleep } = running_time::absence();
        SuspendedTime { stopped, asleep }
    }
}

/// The clock of a process, by default that of the machine.
#[derive(Clone)]
pub(crate) struct ProcessClock(Arc<dyn Clock>);

impl ProcessClock {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self(clock)
    }

    pub(crate) fn get(&self) -> Arc<dyn Clock> {
        self.0.clone()
    }
}

impl Default for ProcessClock {
    fn default() -> Self {
        Self::new(Arc::new(SystemClock::new()))
    }
}

impl fmt::Debug for ProcessClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProcessClock")
    }
}
