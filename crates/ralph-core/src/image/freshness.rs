//! When to look for a newer version of an image that ours are built on.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// How long a successful look lasts.
pub const CHECK_INTERVAL: SignedDuration = SignedDuration::from_hours(7 * 24);

/// How long a failed look is not repeated: a machine without a network must not wait at every run.
pub const RETRY_INTERVAL: SignedDuration = SignedDuration::from_hours(1);

/// How much is done to have an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageEffort {
    /// An image that is there is taken.
    Reuse,
    /// It is built, from what the engine remembers of earlier builds.
    Build,
    /// A newer version of what it is built on is looked for, and every step is done again.
    Rebuild,
}

/// Whether an engine has an image, and where it has it from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImagePresence {
    /// It is not there.
    Missing,
    /// It was made on this machine. A registry's image of the same name would be somebody else's.
    Built,
    /// It came from a registry.
    Pulled,
}

/// When a newer version of an image was looked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryChecks {
    /// The last time that a registry answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<Timestamp>,
    /// The last time that it was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<Timestamp>,
}

/// Whether an image is pulled before ours is built on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullDecision {
    /// Nothing goes without it.
    Required,
    /// A newer version may be there; the one that is here serves, too.
    Due,
    /// Not now.
    Skipped,
}

impl PullDecision {
    /// Decides for an image that ours are built on.
    pub fn decide(
        presence: ImagePresence,
        checks: RegistryChecks,
        effort: ImageEffort,
        now: Timestamp,
    ) -> Self {
        let elapsed = |then: Option<Timestamp>, limit: SignedDuration| {
            // A time that has not come yet was written by a wrong clock.
            then.is_none_or(|then| then > now || now.duration_since(then) >= limit)
        };
        match (presence, effort) {
            (ImagePresence::Missing, _) => Self::Required,
            (ImagePresence::Built, _) => Self::Skipped,
            (ImagePresence::Pulled, ImageEffort::Rebuild) => Self::Due,
            (ImagePresence::Pulled, ImageEffort::Reuse | ImageEffort::Build) => {
                let is_due = elapsed(checks.succeeded, CHECK_INTERVAL)
                    && elapsed(checks.tried, RETRY_INTERVAL);
                if is_due { Self::Due } else { Self::Skipped }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000;
    const DAY: i64 = 86_400;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn checks(succeeded: Option<i64>, tried: Option<i64>) -> RegistryChecks {
        RegistryChecks {
            succeeded: succeeded.map(at),
            tried: tried.map(at),
        }
    }

    #[test]
    fn a_pulled_image_is_checked_every_seven_days() {
        for (succeeded, tried, pull) in [
            (None, None, PullDecision::Due),
            (Some(NOW), Some(NOW), PullDecision::Skipped),
            (Some(NOW - 7 * DAY + 1), None, PullDecision::Skipped),
            (Some(NOW - 7 * DAY), Some(NOW - 7 * DAY), PullDecision::Due),
            (Some(NOW + DAY), None, PullDecision::Due),
        ] {
            let decided = PullDecision::decide(
                ImagePresence::Pulled,
                checks(succeeded, tried),
                ImageEffort::Reuse,
                at(NOW),
            );
            assert_eq!(decided, pull, "{succeeded:?} {tried:?}");
        }
    }

    #[test]
    fn a_failed_check_is_not_repeated_within_the_hour() {
        for (tried, pull) in [
            (NOW - 1, PullDecision::Skipped),
            (NOW - 3599, PullDecision::Skipped),
            (NOW - 3600, PullDecision::Due),
        ] {
            for succeeded in [None, Some(NOW - 30 * DAY)] {
                let decided = PullDecision::decide(
                    ImagePresence::Pulled,
                    checks(succeeded, Some(tried)),
                    ImageEffort::Build,
                    at(NOW),
                );
                assert_eq!(decided, pull, "{tried}");
            }
        }
    }

    #[test]
    fn rebuilding_checks_again_and_never_replaces_a_local_image() {
        let just_now = checks(Some(NOW), Some(NOW));
        let decide = |presence, effort| PullDecision::decide(presence, just_now, effort, at(NOW));
        assert_eq!(
            decide(ImagePresence::Pulled, ImageEffort::Rebuild),
            PullDecision::Due
        );
        for effort in [ImageEffort::Reuse, ImageEffort::Build, ImageEffort::Rebuild] {
            assert_eq!(
                decide(ImagePresence::Missing, effort),
                PullDecision::Required
            );
            assert_eq!(decide(ImagePresence::Built, effort), PullDecision::Skipped);
        }
    }
}
