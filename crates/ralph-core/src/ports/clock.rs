//! The clock port.

use std::time::Duration;

/// Time during which a process existed but did not run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SuspendedTime {
    /// The process was stopped or frozen.
    pub stopped: Duration,
    /// The machine was suspended.
    pub asleep: Duration,
}

impl SuspendedTime {
    /// Returns the sum of both.
    pub fn total(self) -> Duration {
        self.stopped + self.asleep
    }

    /// Returns the time since an earlier reading.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            stopped: self.stopped.saturating_sub(earlier.stopped),
            asleep: self.asleep.saturating_sub(earlier.asleep),
        }
    }

    /// Describes it for the user; `None` if it is shorter than a second.
    pub fn describe(self) -> Option<String> {
        let (stopped, asleep) = (self.stopped.as_secs(), self.asleep.as_secs());
        let what = match (stopped, asleep) {
            (0, 0) => return None,
            (_, 0) => format!("ralph was stopped for {stopped} s"),
            (0, _) => format!("the machine slept for {asleep} s"),
            (_, _) => {
                format!("ralph was stopped for {stopped} s and the machine slept for {asleep} s")
            }
        };
        Some(format!("{what}; this does not count as wall time"))
    }
}

/// Reads the time: one clock for dates, and a monotonic one for measuring.
pub trait Clock: Send + Sync {
    /// Returns the date and time. It may jump when the system clock is set.
    fn now(&self) -> jiff::Timestamp;
    /// Returns how long this process has been running since some fixed moment. It never jumps, and
    /// it does not advance while the process is stopped or the machine is suspended.
    fn monotonic(&self) -> Duration;
    /// Returns how long this process has been suspended since that moment.
    fn suspended_time(&self) -> SuspendedTime {
        SuspendedTime::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspended_time_is_described_if_it_lasts_a_second() {
        let time = |stopped, asleep| SuspendedTime {
            stopped: Duration::from_millis(stopped),
            asleep: Duration::from_millis(asleep),
        };
        let described = |stopped, asleep| time(stopped, asleep).describe();
        assert_eq!(described(999, 0), None);
        let words = "ralph was stopped for 12 s; this does not count as wall time";
        assert_eq!(described(12_300, 0).as_deref(), Some(words));
        let words = "the machine slept for 3600 s; this does not count as wall time";
        assert_eq!(described(0, 3_600_000).as_deref(), Some(words));
        let words = "ralph was stopped for 2 s and the machine slept for 3 s; \
                     this does not count as wall time";
        assert_eq!(described(2_000, 3_000).as_deref(), Some(words));
        let new = time(5_000, 7_000).since(time(2_000, 7_000));
        assert_eq!((new, new.total()), (time(3_000, 0), Duration::from_secs(3)));
    }
}
