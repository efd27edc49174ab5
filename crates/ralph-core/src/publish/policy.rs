//! The settings of publishing: `[ci]`, `[reviews]` and `[overlap]` of `ralph.toml`, and the same keys
//! of a task file.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::task::Contract;

/// How a run waits for the checks of the source host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "CiMilliseconds", into = "CiMilliseconds")]
pub struct CiPolicy {
    /// Whether the run succeeds only if the checks pass.
    pub required: bool,
    /// The number of failed rounds after which the run pauses.
    pub max_rounds: u32,
    /// The first delay between two requests for the state of the checks.
    pub interval: Duration,
    /// The longest wait for the end of the checks.
    pub timeout: Duration,
    /// How long a commit may be without any check; its checks have not passed before this time.
    pub grace: Duration,
}

/// A [`CiPolicy`] in the journal.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct CiMilliseconds {
    required: bool,
    max_rounds: u32,
    interval_ms: u64,
    timeout_ms: u64,
    grace_ms: u64,
}

impl From<CiMilliseconds> for CiPolicy {
    fn from(stored: CiMilliseconds) -> Self {
        Self {
            required: stored.required,
            max_rounds: stored.max_rounds,
            interval: Duration::from_millis(stored.interval_ms),
            timeout: Duration::from_millis(stored.timeout_ms),
            grace: Duration::from_millis(stored.grace_ms),
        }
    }
}

impl From<CiPolicy> for CiMilliseconds {
    fn from(policy: CiPolicy) -> Self {
        let milliseconds =
            |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self {
            required: policy.required,
            max_rounds: policy.max_rounds,
            interval_ms: milliseconds(policy.interval),
            timeout_ms: milliseconds(policy.timeout),
            grace_ms: milliseconds(policy.grace),
        }
    }
}

impl Default for CiPolicy {
    fn default() -> Self {
        Self {
            required: false,
            max_rounds: 3,
            interval: Duration::from_secs(30),
            timeout: Duration::from_mins(30),
            grace: Duration::from_mins(2),
        }
    }
}

impl CiPolicy {
    /// The most failed rounds that a setting may allow.
    pub const MAX_ROUNDS: u32 = 100;
    /// The shortest interval of a setting, for the sake of the host's rate limit.
    pub const MIN_INTERVAL: Duration = Duration::from_secs(1);
    /// The longest time of a setting.
    pub const MAX_TIME: Duration = Duration::from_hours(24);

    /// Returns the delay after a number of requests: it grows to four times the interval.
    pub fn poll_delay(&self, polls: u32) -> Duration {
        let factor = match polls {
            0..=4 => 1,
            5..=8 => 2,
            9.. => 4,
        };
        self.interval.saturating_mul(factor)
    }
}

/// The keys of `ci` that a task sets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CiOverrides {
    pub required: Option<bool>,
    pub max_rounds: Option<u32>,
    pub interval: Option<Duration>,
    pub timeout: Option<Duration>,
    pub grace: Option<Duration>,
}

/// The reaction to another open pull request that changes the same files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverlapAction {
    /// The pull request contains a warning.
    #[default]
    Warn,
    /// The run waits for the user, once for each overlap.
    Pause,
}

/// The settings of publishing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishPolicy {
    pub ci: CiPolicy,
    /// Whether reviews that request changes are given to the model.
    pub respond_to_reviews: bool,
    pub overlap: OverlapAction,
}

impl PublishPolicy {
    /// Returns the settings of a task. A task cannot switch off required checks or the pause for an
    /// overlap.
    #[must_use]
    pub fn for_task(&self, task: &Contract) -> Self {
        let (ci, own) = (&self.ci, &task.ci);
        Self {
            ci: CiPolicy {
                required: ci.required || own.required == Some(true),
                max_rounds: own.max_rounds.unwrap_or(ci.max_rounds),
                interval: own.interval.unwrap_or(ci.interval),
                timeout: own.timeout.unwrap_or(ci.timeout),
                grace: own.grace.unwrap_or(ci.grace),
            },
            respond_to_reviews: task.respond_to_reviews.unwrap_or(self.respond_to_reviews),
            overlap: self.overlap.max(task.overlap.unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::TaskFile;

    fn contract(front_matter: &str) -> Contract {
        let text = format!("---\ntask_id: t\n{front_matter}---\n\n# Task: t\n\n- [ ] a\n");
        TaskFile::parse(text.as_bytes()).unwrap().contract
    }

    #[test]
    fn a_task_changes_the_settings_but_switches_off_nothing() {
        let strict = PublishPolicy {
            ci: CiPolicy {
                required: true,
                ..CiPolicy::default()
            },
            respond_to_reviews: true,
            overlap: OverlapAction::Pause,
        };
        let task = contract(
            "ci: {required: false, max_rounds: 5, interval: 10s, timeout: 1h, grace: 0s}\n\
             reviews: {respond: false}\noverlap: {action: warn}\n",
        );
        let expected = PublishPolicy {
            ci: CiPolicy {
                required: true,
                max_rounds: 5,
                interval: Duration::from_secs(10),
                timeout: Duration::from_hours(1),
                grace: Duration::ZERO,
            },
            respond_to_reviews: false,
            overlap: OverlapAction::Pause,
        };
        assert_eq!(strict.for_task(&task), expected);
        assert_eq!(strict.for_task(&contract("")), strict);
        let task =
            contract("ci: {required: true}\nreviews: {respond: true}\noverlap: {action: pause}\n");
        assert_eq!(PublishPolicy::default().for_task(&task), strict);
    }

    #[test]
    fn the_delay_grows_to_four_times_the_interval() {
        let policy = CiPolicy::default();
        let delays = [1, 4, 5, 8, 9, u32::MAX].map(|polls| policy.poll_delay(polls).as_secs());
        assert_eq!(delays, [30, 30, 60, 60, 120, 120]);
    }

    #[test]
    fn a_policy_round_trips_through_json() {
        let json = serde_json::to_value(PublishPolicy::default()).unwrap();
        assert_eq!(json["ci"]["interval_ms"], 30_000);
        let read: PublishPolicy = serde_json::from_value(json).unwrap();
        assert_eq!(read, PublishPolicy::default());
    }
}
