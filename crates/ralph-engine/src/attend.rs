//! Waits for work while receiving user commands. Meanwhile checks whether this process still owns
//! the run, and whether it was suspended.

use std::pin::Pin;
use std::time::Duration;

use ralph_core::event::RunEvent;
use tokio::time::{Interval, MissedTickBehavior};

use crate::controls::{Controls, PendingRequest};
use crate::error::RunError;
use crate::immediate_commands::{handle_control_event, record_pending_gate_events};
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
    let mut timers = AttendTimers::new();
    loop {
        if let Some(done) = timers.wait_once(journal, control, work.as_mut()).await? {
            return Ok(done);
        }
    }
}

/// Waits for work to end while receiving user commands; a stop drops the work, and so does a request
/// for a fresh iteration, which returns `None`.
pub(crate) async fn attend_until_rotated<T>(
    journal: &mut Journal,
    control: &mut Controls,
    work: impl Future<Output = T>,
) -> Result<Option<T>, RunError> {
    let mut work = std::pin::pin!(work);
    let mut timers = AttendTimers::new();
    while control.pending != Some(PendingRequest::Rotate) {
        if let Some(done) = timers.wait_once(journal, control, work.as_mut()).await? {
            return Ok(Some(done));
        }
    }
    Ok(None)
}

/// The periodic checks during a wait.
struct AttendTimers {
    heartbeat: Interval,
    owner: Interval,
}

impl AttendTimers {
    fn new() -> Self {
        Self {
            heartbeat: heartbeat(),
            owner: every(OWNERSHIP_CHECK_INTERVAL),
        }
    }

    /// Waits for the work, a user command or a timer; returns the result once the work is done.
    async fn wait_once<T>(
        &mut self,
        journal: &mut Journal,
        control: &mut Controls,
        work: Pin<&mut impl Future<Output = T>>,
    ) -> Result<Option<T>, RunError> {
        tokio::select! {
            done = work => return Ok(Some(done)),
            event = control.next() => handle_control_event(journal, control, event)?,
            _ = self.heartbeat.tick() => drop(journal.append(RunEvent::StillActive {})?),
            _ = self.owner.tick() => {
                journal.check_owner()?;
                journal.report_suspension()?;
                // A blocked host is shown while its command still runs.
                if let Some(gate) = control.open_gate() {
                    record_pending_gate_events(journal, &**gate)?;
                }
            }
        }
        Ok(None)
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
