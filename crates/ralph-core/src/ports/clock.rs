//! Time comes in through this door.

use std::time::Duration;

/// Tells the time: one clock for dates, one that never jumps for measuring.
pub trait Clock: Send + Sync {
    /// Returns the date and time. It may jump when somebody sets the clock.
    fn now(&self) -> jiff::Timestamp;
    /// Returns the time since some fixed moment of this process. It never jumps.
    fn monotonic(&self) -> Duration;
}
