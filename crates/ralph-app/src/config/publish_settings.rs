//! `[ci]`, `[reviews]` and `[overlap]`: what a run does with checks, reviews and other pull requests at
//! the source host.

use std::time::Duration;

use ralph_core::publish::{CiPolicy, OverlapAction, PublishPolicy};
use serde::{Deserialize, Deserializer, Serialize};

use super::values::TimeSpan;

/// `[ci]`: the checks of the source host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CiSettings {
    /// Whether a run succeeds only if the checks pass.
    pub required: bool,
    /// The number of failed rounds after which a run pauses.
    #[serde(deserialize_with = "deserialize_rounds")]
    pub max_rounds: u32,
    /// The first delay between two requests for the state of the checks.
    #[serde(deserialize_with = "deserialize_interval")]
    pub interval: TimeSpan,
    /// The longest wait for the end of the checks.
    #[serde(deserialize_with = "deserialize_interval")]
    pub timeout: TimeSpan,
    /// How long a commit may be without any check.
    #[serde(deserialize_with = "deserialize_grace")]
    pub grace: TimeSpan,
}

impl Default for CiSettings {
    fn default() -> Self {
        let policy = CiPolicy::default();
        Self {
            required: policy.required,
            max_rounds: policy.max_rounds,
            interval: TimeSpan::new(policy.interval),
            timeout: TimeSpan::new(policy.timeout),
            grace: TimeSpan::new(policy.grace),
        }
    }
}

fn deserialize_rounds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let rounds = u32::deserialize(deserializer)?;
    if (1..=CiPolicy::MAX_ROUNDS).contains(&rounds) {
        return Ok(rounds);
    }
    Err(serde::de::Error::custom(format!(
        "the number of rounds must be between 1 and {}",
        CiPolicy::MAX_ROUNDS
    )))
}

fn deserialize_interval<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TimeSpan, D::Error> {
    deserialize_time(deserializer, CiPolicy::MIN_INTERVAL)
}

fn deserialize_grace<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TimeSpan, D::Error> {
    deserialize_time(deserializer, Duration::ZERO)
}

fn deserialize_time<'de, D: Deserializer<'de>>(
    deserializer: D,
    shortest: Duration,
) -> Result<TimeSpan, D::Error> {
    let span = TimeSpan::deserialize(deserializer)?;
    if (shortest..=CiPolicy::MAX_TIME).contains(&span.duration()) {
        return Ok(span);
    }
    Err(serde::de::Error::custom(format!(
        "the time must be between {} s and {} h",
        shortest.as_secs(),
        CiPolicy::MAX_TIME.as_secs() / 3600
    )))
}

/// `[reviews]`: the reviews of a run's pull request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReviewSettings {
    /// Whether reviews that request changes are given to the model.
    pub respond: bool,
}

/// `[overlap]`: other open pull requests that change the same files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OverlapSettings {
    /// The reaction to an overlap.
    pub action: OverlapAction,
}

/// Combines the settings of publishing.
pub fn publish_policy(
    ci: &CiSettings,
    reviews: &ReviewSettings,
    overlap: &OverlapSettings,
) -> PublishPolicy {
    PublishPolicy {
        ci: CiPolicy {
            required: ci.required,
            max_rounds: ci.max_rounds,
            interval: ci.interval.duration(),
            timeout: ci.timeout.duration(),
            grace: ci.grace.duration(),
        },
        respond_to_reviews: reviews.respond,
        overlap: overlap.action,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Settings;

    #[test]
    fn the_defaults_are_those_of_the_policy() {
        let settings = Settings::default();
        let policy = publish_policy(&settings.ci, &settings.reviews, &settings.overlap);
        assert_eq!(policy, PublishPolicy::default());
    }

    #[test]
    fn values_out_of_range_are_errors() {
        for (text, why) in [
            (
                "[ci]\nmax_rounds = 0\n",
                "the number of rounds must be between 1 and 100",
            ),
            (
                "[ci]\ninterval = \"500ms\"\n",
                "the time must be between 1 s and 24 h",
            ),
            (
                "[ci]\ntimeout = \"25h\"\n",
                "the time must be between 1 s and 24 h",
            ),
            (
                "[ci]\ngrace = \"25h\"\n",
                "the time must be between 0 s and 24 h",
            ),
            (
                "[overlap]\naction = \"stop\"\n",
                "unknown variant `stop`, expected `warn` or `pause`",
            ),
            (
                "[reviews]\nreply = true\n",
                "unknown field `reply`, expected `respond`",
            ),
        ] {
            let error = Settings::parse(Path::new("ralph.toml"), text).unwrap_err();
            let error = error.to_string();
            assert!(error.ends_with(why), "{error}");
        }
    }
}
