//! Waiting until a model can be asked again: for the end of a usage limit, or of a provider's outage. Both use
//! no iteration, and their time does not count.

use std::time::Duration;

use ralph_core::event::{Event, RunEvent};
use ralph_core::outage::Jitter;
use ralph_core::run::{ProviderWait, QuotaWait, RunStatus};

use crate::control::PendingRequest;
use crate::error::RunError;
use crate::immediate_commands::handle_control_event;
use crate::journal::millis;
use crate::run::Run;

/// How often the countdown is recorded.
const COUNTDOWN_INTERVAL: Duration = Duration::from_mins(5);
/// The longest sleep: a machine that was suspended has to notice that the time has passed.
const POLL_INTERVAL: Duration = Duration::from_secs(20);

/// The reason for a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitReason {
    /// The end of a usage limit.
    Quota,
    /// The end of a provider's outage.
    Provider,
}

impl WaitReason {
    fn status(self, until: jiff::Timestamp, why: String) -> RunStatus {
        match self {
            Self::Quota => RunStatus::WaitingQuota(QuotaWait { until, why }),
            Self::Provider => RunStatus::WaitingProvider(ProviderWait { until, why }),
        }
    }

    fn countdown(self, iteration: u32, until: jiff::Timestamp, left_ms: u64) -> Event {
        match self {
            Self::Quota => Event::Run(RunEvent::QuotaCountdown {
                iteration,
                until,
                left_ms,
            }),
            Self::Provider => Event::Run(RunEvent::ProviderCountdown {
                iteration,
                until,
                left_ms,
            }),
        }
    }
}

impl Run {
    /// Waits until the model may be asked again. `ralph resume` ends the wait, as do a pause and the choice of
    /// another model.
    pub(crate) async fn wait_for_model(
        &mut self,
        awaited: WaitReason,
        wait: Duration,
        why: String,
    ) -> Result<(), RunError> {
        let before = self.state().status.clone();
        let until = self.services.clock.now() + wait;
        let begun = self.elapsed();
        let waiting = awaited.status(until, why);
        self.log_activity(&waiting.reason().unwrap_or_default())?;
        self.files.sync()?;
        self.set_status(waiting)?;
        self.control.resumed = false;
        let mut told: Option<Duration> = None;
        while !self.control.resumed
            && self.control.pending != Some(PendingRequest::Pause)
            && self.state().wanted_profile.is_none()
        {
            // The date decides after a sleep of the machine, but not if the clock was set back.
            let by_date = Duration::try_from(until - self.services.clock.now()).unwrap_or_default();
            let left = by_date.min((begun + wait).saturating_sub(self.elapsed()));
            if left.is_zero() {
                break;
            }
            if told.is_none_or(|told| told.saturating_sub(left) >= COUNTDOWN_INTERVAL) {
                told = Some(left);
                let iteration = self.state().iteration;
                let countdown = awaited.countdown(iteration, until, millis(left));
                self.journal.append(countdown)?;
            }
            tokio::select! {
                () = tokio::time::sleep(left.min(POLL_INTERVAL)) => {}
                call = self.control.next() => handle_control_event(&mut self.journal, &mut self.control, call)?,
            }
            self.run_pending_commands().await?;
        }
        self.set_status(before)?;
        self.log_activity("the model is asked again")?;
        self.handle_pending_input().await?;
        self.apply_wanted_profile()
    }

    /// Returns how long this process has existed, with the time during which it did not run.
    fn elapsed(&self) -> Duration {
        self.services.clock.monotonic() + self.services.clock.suspended_time().total()
    }
}

/// Returns a random part of a delay, so that many runs do not ask again at the same moment.
pub(crate) fn random_jitter() -> Jitter {
    use std::hash::{BuildHasher as _, Hasher as _};
    let random = std::collections::hash_map::RandomState::new();
    Jitter::new(random.build_hasher().finish())
}
