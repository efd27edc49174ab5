//! Computes how long a run waits for the end of a usage limit.

use std::time::Duration;

/// The first wait if the provider reports no time; it doubles each time, up to the longest.
const FIRST_WAIT: Duration = Duration::from_mins(15);
const MAX_UNANNOUNCED_WAIT: Duration = Duration::from_hours(1);
/// The most waits for the same limit before the run pauses.
const MAX_WAITS: u32 = 48;
/// The longest accepted wait: some limits are weekly.
const MAX_WAIT: Duration = Duration::from_hours(24 * 8);

/// Returns how long to wait for the end of a limit that was hit this many times in a row; none if
/// it does not seem to end.
pub(crate) fn quota_wait(resets_in: Option<Duration>, hits: u32) -> Option<Duration> {
    if hits > MAX_WAITS {
        return None;
    }
    let doubled = FIRST_WAIT * 2_u32.pow(hits.saturating_sub(1).min(4));
    // A provider that repeatedly reports no wait must not be asked in a tight loop.
    let least = Duration::from_secs(u64::from(hits));
    Some(
        resets_in
            .unwrap_or(doubled.min(MAX_UNANNOUNCED_WAIT))
            .clamp(least, MAX_WAIT),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_follows_the_provider_or_grows() {
        let minutes = |minutes| Some(Duration::from_mins(minutes));
        for (resets_in, hits, expected) in [
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
            assert_eq!(
                quota_wait(resets_in, hits),
                expected,
                "{resets_in:?} {hits}"
            );
        }
    }
}
