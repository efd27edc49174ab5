//! Decides how long a run waits for a model provider that is not available.
//!
//! The first retries follow quickly, as part of the iteration. After that the run waits in the
//! status `waiting_provider` with growing delays, until the provider responds or the limit is
//! reached.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ports::MAX_RETRY_WAIT;

/// Quick retries before the run waits.
const QUICK_RETRIES: u32 = 4;
/// Truncated replies in a row before the run waits; each of them costs money.
const QUICK_CUT_OFF_RETRIES: u32 = 2;
/// Truncated replies in a row before the run gives up.
const MAX_CUT_OFF: u32 = 10;
/// The longest delay that a provider can ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_hours(1);
/// The number of doublings that an agent's first delay skips: its program has already retried its
/// requests.
const SKIPPED_AGENT_DELAYS: u32 = 3;

/// The delays between attempts, and the longest outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "OutageMilliseconds", into = "OutageMilliseconds")]
pub struct OutagePolicy {
    /// Doubles with each failure.
    pub first_delay: Duration,
    /// Does not apply to a delay that the provider asks for.
    pub longest_delay: Duration,
    /// Total waiting time before the run pauses.
    pub max_outage: Duration,
}

/// An [`OutagePolicy`] in the journal.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the stored names state the unit")]
struct OutageMilliseconds {
    first_delay_ms: u64,
    longest_delay_ms: u64,
    max_outage_ms: u64,
}

impl From<OutageMilliseconds> for OutagePolicy {
    fn from(stored: OutageMilliseconds) -> Self {
        Self {
            first_delay: Duration::from_millis(stored.first_delay_ms),
            longest_delay: Duration::from_millis(stored.longest_delay_ms),
            max_outage: Duration::from_millis(stored.max_outage_ms),
        }
    }
}

impl From<OutagePolicy> for OutageMilliseconds {
    fn from(policy: OutagePolicy) -> Self {
        let milliseconds =
            |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self {
            first_delay_ms: milliseconds(policy.first_delay),
            longest_delay_ms: milliseconds(policy.longest_delay),
            max_outage_ms: milliseconds(policy.max_outage),
        }
    }
}

impl Default for OutagePolicy {
    fn default() -> Self {
        Self {
            first_delay: Duration::from_secs(2),
            longest_delay: Duration::from_mins(10),
            max_outage: Duration::from_hours(12),
        }
    }
}

impl OutagePolicy {
    /// Returns the delay after a number of failures; `jitter` spreads the retries of many runs.
    pub fn delay(&self, failures: u32, jitter: Jitter) -> Duration {
        let factor = 2_u32.saturating_pow(failures.saturating_sub(1));
        let delay = self.first_delay.saturating_mul(factor);
        let delay = delay.min(self.longest_delay.max(self.first_delay));
        delay / 2 + jitter.scale(delay / 2)
    }
}

/// A random fraction, in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jitter(u32);

impl Jitter {
    /// Creates a fraction from a random number.
    pub fn new(random: u64) -> Self {
        Self(u32::try_from(random % 1001).unwrap_or(0))
    }

    /// Returns this fraction of a duration.
    pub fn scale(self, whole: Duration) -> Duration {
        whole * self.0 / 1000
    }
}

/// The next step after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutageStep {
    /// Retry after this delay, within the iteration.
    Retry(Duration),
    /// Wait in the status `waiting_provider` for this long.
    Wait(Duration),
    /// The limit is reached.
    GiveUp,
}

/// An outage in progress: the failures since the provider's last response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    policy: OutagePolicy,
    failures: u32,
    cut_off: u32,
    waited: Duration,
}

impl Outage {
    /// Starts without failures.
    pub fn new(policy: OutagePolicy) -> Self {
        Self {
            policy,
            failures: 0,
            cut_off: 0,
            waited: Duration::ZERO,
        }
    }

    /// Returns the total time spent in the status `waiting_provider`.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Discards earlier failures, because the provider responded or another one is used.
    pub fn reset(&mut self) {
        *self = Self::new(self.policy);
    }

    /// Returns the next step after a failed request. The provider's `Retry-After` is a minimum:
    /// zero and dates in the past do not shorten the delays.
    pub fn record_unanswered(
        &mut self,
        retry_after: Option<Duration>,
        jitter: Jitter,
    ) -> OutageStep {
        self.failures = self.failures.saturating_add(1);
        let backoff = self.policy.delay(self.failures, jitter);
        let delay = match retry_after.map(|delay| delay.min(MAX_RETRY_AFTER)) {
            Some(asked) if asked > backoff => {
                asked + jitter.scale(self.policy.first_delay.min(asked / 4))
            }
            Some(_) | None => backoff,
        };
        let is_soon = delay <= MAX_RETRY_WAIT;
        if is_soon && self.failures <= QUICK_RETRIES && self.cut_off <= QUICK_CUT_OFF_RETRIES {
            return OutageStep::Retry(delay);
        }
        self.wait(delay)
    }

    /// Returns the next step after a truncated reply. Truncated replies are billed, so their number
    /// is limited, too.
    pub fn record_cut_off(&mut self, jitter: Jitter) -> OutageStep {
        self.cut_off = self.cut_off.saturating_add(1);
        if self.cut_off >= MAX_CUT_OFF {
            return OutageStep::GiveUp;
        }
        self.record_unanswered(None, jitter)
    }

    /// Returns the next step after an agent session that failed because its provider was
    /// unavailable.
    pub fn record_agent_failure(&mut self, jitter: Jitter) -> OutageStep {
        self.failures = self.failures.saturating_add(1);
        let step = self.failures.saturating_add(SKIPPED_AGENT_DELAYS);
        self.wait(self.policy.delay(step, jitter))
    }

    fn wait(&mut self, delay: Duration) -> OutageStep {
        let left = self.policy.max_outage.saturating_sub(self.waited);
        if left.is_zero() {
            return OutageStep::GiveUp;
        }
        let delay = delay.min(left);
        self.waited += delay;
        OutageStep::Wait(delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Jitter = Jitter(0);
    const ALL: Jitter = Jitter(1000);

    fn seconds(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    #[test]
    fn delays_grow_up_to_the_longest_and_are_spread() {
        let policy = OutagePolicy::default();
        let delays: Vec<u64> = (1..=11)
            .map(|failures| policy.delay(failures, ALL).as_secs())
            .collect();
        assert_eq!(delays, [2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
        assert_eq!(policy.delay(1, NONE), seconds(1));
        assert_eq!(policy.delay(u32::MAX, NONE), seconds(300));
        assert_eq!(Jitter::new(5).scale(seconds(1)), Duration::from_millis(5));
        assert_eq!(Jitter::new(1001), NONE);
    }

    #[test]
    fn an_outage_lasts_up_to_its_limit_and_then_ends() {
        let policy = OutagePolicy {
            max_outage: seconds(100),
            ..OutagePolicy::default()
        };
        let mut outage = Outage::new(policy);
        let steps: Vec<OutageStep> = (0..7)
            .map(|_| outage.record_unanswered(None, ALL))
            .collect();
        let retry = |number| OutageStep::Retry(seconds(number));
        let wait = |number| OutageStep::Wait(seconds(number));
        assert_eq!(
            steps,
            [
                retry(2),
                retry(4),
                retry(8),
                retry(16),
                wait(32),
                wait(64),
                wait(4)
            ]
        );
        assert_eq!(outage.record_unanswered(None, ALL), OutageStep::GiveUp);
        assert_eq!(outage.waited(), seconds(100));
        outage.reset();
        assert_eq!(outage.record_unanswered(None, ALL), retry(2));
    }

    #[test]
    fn waits_through_a_night_of_errors_by_default() {
        let mut outage = Outage::new(OutagePolicy::default());
        let mut attempts = 0;
        while outage.record_unanswered(Some(Duration::ZERO), NONE) != OutageStep::GiveUp {
            attempts += 1;
        }
        assert_eq!(outage.waited(), Duration::from_hours(12));
        assert!((72..200).contains(&attempts), "{attempts}");
    }

    #[test]
    fn a_provider_can_lengthen_but_not_shorten_the_delay() {
        let step = |asked| {
            let mut outage = Outage::new(OutagePolicy::default());
            outage.record_unanswered(Some(asked), NONE)
        };
        assert_eq!(step(Duration::ZERO), OutageStep::Retry(seconds(1)));
        assert_eq!(step(seconds(40)), OutageStep::Retry(seconds(40)));
        assert_eq!(step(seconds(1_000_000)), OutageStep::Wait(seconds(3600)));
        let mut outage = Outage::new(OutagePolicy::default());
        let spread = outage.record_unanswered(Some(seconds(40)), ALL);
        assert_eq!(spread, OutageStep::Retry(seconds(42)));
    }

    #[test]
    fn truncated_replies_are_limited_in_number() {
        let mut outage = Outage::new(OutagePolicy::default());
        let steps: Vec<OutageStep> = (0..10).map(|_| outage.record_cut_off(ALL)).collect();
        let is_retry = |step: &OutageStep| matches!(step, OutageStep::Retry(_));
        assert!(steps[..2].iter().all(is_retry), "{steps:?}");
        assert_eq!(steps[2], OutageStep::Wait(seconds(8)));
        assert_eq!(steps[9], OutageStep::GiveUp);
    }

    #[test]
    fn an_agent_waits_after_its_first_failure() {
        let mut outage = Outage::new(OutagePolicy::default());
        let steps: Vec<OutageStep> = (0..3).map(|_| outage.record_agent_failure(ALL)).collect();
        let wait = |number| OutageStep::Wait(seconds(number));
        assert_eq!(steps, [wait(16), wait(32), wait(64)]);
    }
}
