//! Waiting for the end of a usage limit. It burns no iteration, and its time is not counted.

use std::time::Duration;

use ralph_core::event::Event;
use ralph_core::run::{QuotaWait, RunStatus};

use crate::control::Wish;
use crate::error::RunError;
use crate::journal::millis;
use crate::live::answer;
use crate::run::Run;

/// How long to wait where the provider does not say; twice as long each time, up to the longest.
const FIRST_LOOK: Duration = Duration::from_mins(15);
const LAST_LOOK: Duration = Duration::from_hours(1);
/// How often a limit may turn out not to be over before a person has to look at it.
const MAX_LOOKS: u32 = 48;
/// The longest wait that is believed: some limits are weekly.
const LONGEST: Duration = Duration::from_hours(24 * 8);
/// How often the countdown is told.
const TELL_EVERY: Duration = Duration::from_mins(5);
/// How often the clock is looked at: a machine that slept has to notice.
const LOOK_EVERY: Duration = Duration::from_secs(20);

/// Returns how long to wait for the end of a limit that was met so many times in a row; none if it
/// does not seem to end.
pub(crate) fn wait(resets_in: Option<Duration>, looks: u32) -> Option<Duration> {
    if looks > MAX_LOOKS {
        return None;
    }
    let doubled = FIRST_LOOK * 2_u32.pow(looks.saturating_sub(1).min(4));
    // A provider that says "at once" again and again must not be asked again and again.
    let least = Duration::from_secs(u64::from(looks));
    Some(
        resets_in
            .unwrap_or(doubled.min(LAST_LOOK))
            .clamp(least, LONGEST),
    )
}

impl Run {
    /// Waits until the model may be asked again, a person says to go on, or another model is chosen.
    pub(crate) async fn wait_for_quota(
        &mut self,
        wait: Duration,
        why: String,
    ) -> Result<(), RunError> {
        let before = self.state().status.clone();
        let until = self.outside.clock.now() + wait;
        let waiting = RunStatus::WaitingQuota(QuotaWait { until, why });
        self.log_activity(&waiting.reason().unwrap_or_default())?;
        self.files.sync()?;
        self.set_status(waiting)?;
        self.control.resumed = false;
        let mut told: Option<Duration> = None;
        while !self.control.resumed
            && self.control.wish != Some(Wish::Pause)
            && self.state().wanted_profile.is_none()
        {
            let left = Duration::try_from(until - self.outside.clock.now()).unwrap_or_default();
            if left.is_zero() {
                break;
            }
            if told.is_none_or(|told| told.saturating_sub(left) >= TELL_EVERY) {
                told = Some(left);
                self.journal.append(Event::QuotaCountdown {
                    iteration: self.state().iteration,
                    until,
                    left_ms: millis(left),
                })?;
            }
            tokio::select! {
                () = tokio::time::sleep(left.min(LOOK_EVERY)) => {}
                call = self.control.next() => answer(&mut self.journal, &mut self.control, call)?,
            }
            self.run_errands().await?;
        }
        self.set_status(before)?;
        self.log_activity("the model is asked again")?;
        self.boundary().await?;
        self.take_up_profile()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_what_the_provider_says_or_grows() {
        let minutes = |minutes| Some(Duration::from_mins(minutes));
        for (resets_in, looks, expected) in [
            (minutes(300), 1, minutes(300)),
            (minutes(60 * 24 * 30), 1, minutes(60 * 24 * 8)),
            (Some(Duration::ZERO), 3, Some(Duration::from_secs(3))),
            (None, 1, minutes(15)),
            (None, 2, minutes(30)),
            (None, 3, minutes(60)),
            (None, 48, minutes(60)),
            (None, 49, None),
            (minutes(5), 49, None),
        ] {
            assert_eq!(wait(resets_in, looks), expected, "{resets_in:?} {looks}");
        }
    }
}
