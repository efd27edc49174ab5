//! The clock of the machine.

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
