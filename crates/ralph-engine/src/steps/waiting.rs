//! Waits until a model or the source host can be asked again: for the end of a limit or of an outage.
//! A wait uses no iteration and no wall time of the budget.

use std::time::Duration;

use ralph_core::event::{Event, RunEvent};
use ralph_core::outage::Jitter;
use ralph_core::run::{HostWait, ProviderWait, QuotaWait, RunStatus};

use super::profile_switch::apply_wanted_profile;
use crate::controls::PendingRequest;
use crate::error::RunError;
use crate::immediate_commands::handle_control_event;
use crate::journal::millis;
use crate::pause::handle_pending_input;
use crate::recorder::Recorder;
use crate::run::Run;
use crate::user_commands::run_pending_commands;
use crate::worker_wait::enter_status;

/// How often the countdown is recorded.
const COUNTDOWN_INTERVAL: Duration = Duration::from_mins(5);
/// The longest sleep, so that the process notices the elapsed time after a suspend of the machine.
pub(crate) const WAIT_POLL_INTERVAL: Duration = Duration::from_secs(20);

/// The reason for a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitReason {
    /// The end of a usage limit.
    Quota,
    /// The end of a provider's outage.
    Provider,
    /// The end of a limit or an outage of the source host.
    Host,
}

impl WaitReason {
    fn status(self, until: jiff::Timestamp, why: String) -> RunStatus {
        match self {
            Self::Quota => RunStatus::WaitingQuota(QuotaWait { until, why }),
            Self::Provider => RunStatus::WaitingProvider(ProviderWait { until, why }),
            Self::Host => RunStatus::WaitingHost(HostWait { until, why }),
        }
    }

    /// Returns the record of the remaining time; `None` for waits that end within an hour.
    fn countdown(self, iteration: u32, until: jiff::Timestamp, left_ms: u64) -> Option<Event> {
        match self {
            Self::Quota => Some(Event::Run(RunEvent::QuotaCountdown {
                iteration,
                until,
                left_ms,
            })),
            Self::Provider => Some(Event::Run(RunEvent::ProviderCountdown {
                iteration,
                until,
                left_ms,
            })),
            Self::Host => None,
        }
    }

    /// Returns whether the choice of another model ends the wait.
    fn ends_with_another_model(self) -> bool {
        match self {
            Self::Quota | Self::Provider => true,
            Self::Host => false,
        }
    }
}

/// Waits until the model may be asked again. `ralph resume` ends the wait, as do a pause and the
/// choice of another model.
pub(crate) async fn wait_for_model(
    run: &mut Run,
    reason: WaitReason,
    wait: Duration,
    why: String,
) -> Result<(), RunError> {
    wait_until(run, reason, wait, why).await?;
    run.recorder.log_activity("the model is asked again")?;
    handle_pending_input(run).await?;
    apply_wanted_profile(run)
}

/// Waits until the source host may be asked again. `ralph resume` ends the wait, as does a pause.
pub(crate) async fn wait_for_host(
    run: &mut Run,
    wait: Duration,
    why: String,
) -> Result<(), RunError> {
    wait_until(run, WaitReason::Host, wait, why).await?;
    run.recorder
        .log_activity("the source host is asked again")?;
    handle_pending_input(run).await
}

async fn wait_until(
    run: &mut Run,
    reason: WaitReason,
    wait: Duration,
    why: String,
) -> Result<(), RunError> {
    let before = run.recorder.state().status.clone();
    let until = run.recorder.clock.now() + wait;
    let started = elapsed(&run.recorder);
    let waiting = reason.status(until, why);
    run.recorder
        .log_activity(&waiting.reason().unwrap_or_default())?;
    run.recorder.files.sync()?;
    enter_status(&mut run.recorder.journal, &mut run.controls, waiting).await?;
    run.controls.resumed = false;
    let mut last_countdown: Option<Duration> = None;
    while !run.controls.resumed
        && run.controls.pending != Some(PendingRequest::Pause)
        && !(reason.ends_with_another_model() && run.recorder.state().wanted_profile.is_some())
    {
        // After a suspend of the machine the date decides, but not if the clock was set back.
        let by_date =
            Duration::try_from(until - run.recorder.clock.now()).unwrap_or(Duration::ZERO);
        let left = by_date.min((started + wait).saturating_sub(elapsed(&run.recorder)));
        if left.is_zero() {
            break;
        }
        if last_countdown.is_none_or(|last| last.saturating_sub(left) >= COUNTDOWN_INTERVAL) {
            last_countdown = Some(left);
            let iteration = run.recorder.state().iteration;
            let countdown = reason.countdown(iteration, until, millis(left));
            run.recorder.append_all(countdown)?;
        }
        tokio::select! {
            () = tokio::time::sleep(left.min(WAIT_POLL_INTERVAL)) => {}
            event = run.controls.next() => handle_control_event(&mut run.recorder.journal, &mut run.controls, event)?,
        }
        run_pending_commands(run).await?;
    }
    enter_status(&mut run.recorder.journal, &mut run.controls, before).await
}

/// Returns the time since the start of this process, including the time in which it was suspended.
pub(crate) fn elapsed(recorder: &Recorder) -> Duration {
    recorder.clock.monotonic() + recorder.clock.suspended_time().total()
}

/// Returns a random part of a delay, so that many runs do not ask again at the same moment.
pub(crate) fn random_jitter() -> Jitter {
    use std::hash::{BuildHasher as _, Hasher as _};
    let random = std::collections::hash_map::RandomState::new();
    Jitter::new(random.build_hasher().finish())
}
