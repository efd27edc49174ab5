//! Decides when to check for a newer version of a base image.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// The interval between successful checks.
pub const CHECK_INTERVAL: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The delay after a failed check, so that a machine without a network does not wait at every run.
pub const RETRY_INTERVAL: SignedDuration = SignedDuration::from_hours(1);

/// How thoroughly an image is rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageEffort {
    /// Use an existing image.
    Reuse,
    /// Build the image with the build cache.
    Build,
    /// Check for a newer base image and build without the cache.
    Rebuild,
}

/// Whether a Docker Engine has an image, and its origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImagePresence {
    /// The image does not exist.
    Missing,
    /// The image was built on this machine. An image of the same name in a registry is unrelated.
    Built,
    /// The image was pulled from a registry.
    Pulled,
}

/// Times of the last checks for a newer version of an image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryChecks {
    /// The last successful check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<Timestamp>,
    /// The last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<Timestamp>,
}

/// Whether a base image is pulled before a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullDecision {
    /// The build needs the image.
    Required,
    /// A newer version may exist; the present one is usable if the pull fails.
    Due,
    /// No pull.
    Skipped,
}

impl PullDecision {
    /// Decides whether to pull a base image.
    pub fn decide(
        presence: ImagePresence,
        checks: RegistryChecks,
        effort: ImageEffort,
        now: Timestamp,
    ) -> Self {
        let elapsed = |then: Option<Timestamp>, limit: SignedDuration| {
            // A time in the future was recorded by a wrong clock.
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
