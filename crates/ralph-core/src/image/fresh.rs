//! When to look for a newer version of an image that ours are built on.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// How long a successful look lasts.
pub const CHECK_AFTER: SignedDuration = SignedDuration::from_hours(7 * 24);

/// How long a failed look is not repeated: a machine without a network must not wait at every run.
pub const RETRY_AFTER: SignedDuration = SignedDuration::from_hours(1);

/// How much is done to have an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// An image that is there is taken.
    Reuse,
    /// It is built, from what the engine remembers of earlier builds.
    Build,
    /// A newer version of what it is built on is looked for, and every step is done again.
    Rebuild,
}

/// Whether an engine has an image, and where it has it from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It is not there.
    Missing,
    /// It was made on this machine. A registry's image of the same name would be somebody else's.
    Made,
    /// It came from a registry.
    Pulled,
}

/// When a newer version of an image was looked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checks {
    /// The last time that a registry answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<Timestamp>,
    /// The last time that it was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<Timestamp>,
}

/// Whether an image is pulled before ours is built on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pull {
    /// Nothing goes without it.
    Needed,
    /// A newer version may be there; the one that is here serves, too.
    Due,
    /// Not now.
    Skipped,
}

impl Pull {
    /// Decides for an image that ours are built on.
    pub fn decide(presence: Presence, checks: Checks, effort: Effort, now: Timestamp) -> Self {
        let elapsed = |then: Option<Timestamp>, limit: SignedDuration| {
            // A time that has not come yet was written by a wrong clock.
            then.is_none_or(|then| then > now || now.duration_since(then) >= limit)
        };
        match (presence, effort) {
            (Presence::Missing, _) => Self::Needed,
            (Presence::Made, _) => Self::Skipped,
            (Presence::Pulled, Effort::Rebuild) => Self::Due,
            (Presence::Pulled, Effort::Reuse | Effort::Build) => {
                let is_due =
                    elapsed(checks.succeeded, CHECK_AFTER) && elapsed(checks.tried, RETRY_AFTER);
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

    fn checks(succeeded: Option<i64>, tried: Option<i64>) -> Checks {
        Checks {
            succeeded: succeeded.map(at),
            tried: tried.map(at),
        }
    }

    #[test]
    fn a_registrys_image_is_looked_at_every_seven_days() {
        for (succeeded, tried, pull) in [
            (None, None, Pull::Due),
            (Some(NOW), Some(NOW), Pull::Skipped),
            (Some(NOW - 7 * DAY + 1), None, Pull::Skipped),
            (Some(NOW - 7 * DAY), Some(NOW - 7 * DAY), Pull::Due),
            (Some(NOW + DAY), None, Pull::Due),
        ] {
            let decided = Pull::decide(
                Presence::Pulled,
                checks(succeeded, tried),
                Effort::Reuse,
                at(NOW),
            );
            assert_eq!(decided, pull, "{succeeded:?} {tried:?}");
        }
    }

    #[test]
    fn a_failed_look_is_not_repeated_within_the_hour() {
        for (tried, pull) in [
            (NOW - 1, Pull::Skipped),
            (NOW - 3599, Pull::Skipped),
            (NOW - 3600, Pull::Due),
        ] {
            for succeeded in [None, Some(NOW - 30 * DAY)] {
                let decided = Pull::decide(
                    Presence::Pulled,
                    checks(succeeded, Some(tried)),
                    Effort::Build,
                    at(NOW),
                );
                assert_eq!(decided, pull, "{tried}");
            }
        }
    }

    #[test]
    fn rebuilding_looks_again_and_nothing_ever_replaces_what_was_made_here() {
        let just_now = checks(Some(NOW), Some(NOW));
        let decide = |presence, effort| Pull::decide(presence, just_now, effort, at(NOW));
        assert_eq!(decide(Presence::Pulled, Effort::Rebuild), Pull::Due);
        for effort in [Effort::Reuse, Effort::Build, Effort::Rebuild] {
            assert_eq!(decide(Presence::Missing, effort), Pull::Needed);
            assert_eq!(decide(Presence::Made, effort), Pull::Skipped);
        }
    }
}
