//! Waits for work while receiving user commands. Meanwhile checks whether this process still owns
//! the run, and whether it was suspended.

use std::time::Duration;

use ralph_core::event::RunEvent;
use tokio::time::{Interval, MissedTickBehavior};

use crate::controls::Controls;
use crate::error::RunError;
use crate::immediate_commands::handle_control_event;
use crate::journal::Journal;

/// How often a process checks during a wait whether it still owns the run, and whether it was
/// suspended.
const OWNERSHIP_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Waits for work to end while receiving user commands; a stop drops the work.
pub(crate) async fn attend<T>(
    journal: &mut Journal,
    control: &mut Controls,
    work: impl Future<Output = T>,
) -> Result<T, RunError> {
    let mut work = std::pin::pin!(work);
    let (mut heartbeat_timer, mut owner_timer) = (heartbeat(), every(OWNERSHIP_CHECK_INTERVAL));
    loop {
        tokio::select! {
            done = &mut work => return Ok(done),
            event = control.next() => handle_control_event(journal, control, event)?,
            _ = heartbeat_timer.tick() => drop(journal.append(RunEvent::StillActive {})?),
            _ = owner_timer.tick() => {
                journal.check_owner()?;
                journal.report_suspension()?;
            }
        }
    }
}

/// Returns the interval at which long work records that the run is still active.
pub(crate) fn heartbeat() -> Interval {
    every(Controls::HEARTBEAT)
}

/// Returns an interval without an immediate first tick, which does not catch up on ticks after this
/// process was suspended.
fn every(period: Duration) -> Interval {
    let mut interval = tokio::time::interval_at(tokio::time::Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}
