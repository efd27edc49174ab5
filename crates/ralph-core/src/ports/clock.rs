//! Time comes in through this door.

use std::time::Duration;

/// The time during which a process existed and did not run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SuspendedTime {
    /// It was stopped or frozen.
    pub stopped: Duration,
    /// The machine slept.
    pub asleep: Duration,
}

impl SuspendedTime {
    /// Returns the whole time.
    pub fn total(self) -> Duration {
        self.stopped + self.asleep
    }

    /// Returns the part that is not in an earlier absence.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            stopped: self.stopped.saturating_sub(earlier.stopped),
            asleep: self.asleep.saturating_sub(earlier.asleep),
        }
    }

    /// Describes it for the user; none if it is shorter than a second.
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

/// Tells the time: one clock for dates, one that never jumps for measuring.
pub trait Clock: Send + Sync {
    /// Returns the date and time. It may jump when somebody sets the clock.
    fn now(&self) -> jiff::Timestamp;
    /// Returns how long this process has been running since some fixed moment. It never jumps, and it
    /// stands still while the process is stopped or the machine sleeps.
    fn monotonic(&self) -> Duration;
    /// Returns how long this process has not been running since that moment.
    fn suspended_time(&self) -> SuspendedTime {
        SuspendedTime::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absence_is_described_from_a_second_on() {
        let absence = |stopped, asleep| SuspendedTime {
            stopped: Duration::from_millis(stopped),
            asleep: Duration::from_millis(asleep),
        };
        let described = |stopped, asleep| absence(stopped, asleep).describe();
        assert_eq!(described(999, 0), None);
        let words = "ralph was stopped for 12 s; this does not count as wall time";
        assert_eq!(described(12_300, 0).as_deref(), Some(words));
        let words = "the machine slept for 3600 s; this does not count as wall time";
        assert_eq!(described(0, 3_600_000).as_deref(), Some(words));
        let words = "ralph was stopped for 2 s and the machine slept for 3 s; \
                     this does not count as wall time";
        assert_eq!(described(2_000, 3_000).as_deref(), Some(words));
        let new = absence(5_000, 7_000).since(absence(2_000, 7_000));
        assert_eq!(
            (new, new.total()),
            (absence(3_000, 0), Duration::from_secs(3))
        );
    }
}
