//! Limits how long a run waits for a source host that is not available or limits requests.

use std::time::Duration;

use crate::outage::{Jitter, OutagePolicy};
use crate::ports::{HostErrorKind, ScmError};

/// The longest total wait for a host before the run pauses.
pub const MAX_HOST_WAIT: Duration = Duration::from_hours(1);

/// Returns how long to wait before a request is repeated; `None` if only the user can help, or if
/// the total wait would be longer than [`MAX_HOST_WAIT`].
pub fn host_wait(
    error: &ScmError,
    failures: u32,
    waited: Duration,
    now: jiff::Timestamp,
    (delays, jitter): (&OutagePolicy, Jitter),
) -> Option<Duration> {
    let ScmError::Host(error) = error else {
        return None;
    };
    if !error.kind.is_transient() {
        return None;
    }
    let delay = delays.delay(failures, jitter);
    let wait = match &error.kind {
        HostErrorKind::RateLimited { until } => {
            let left = Duration::try_from(*until - now).unwrap_or(Duration::ZERO);
            // A limit that ended in the past must not be asked in a tight loop.
            left.max(delay.min(Duration::from_secs(1)))
        }
        HostErrorKind::Unavailable { .. }
        | HostErrorKind::Unauthorized { .. }
        | HostErrorKind::WrongClock { .. }
        | HostErrorKind::Forbidden { .. }
        | HostErrorKind::NotFound { .. }
        | HostErrorKind::Renamed { .. }
        | HostErrorKind::Archived
        | HostErrorKind::Protected { .. }
        | HostErrorKind::Rejected { .. }
        | HostErrorKind::Certificate { .. }
        | HostErrorKind::Unexpected { .. } => delay,
    };
    (waited.saturating_add(wait) <= MAX_HOST_WAIT).then_some(wait)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::HostError;

    #[test]
    fn only_a_transient_error_is_waited_for_and_for_an_hour_at_most() {
        let now = jiff::Timestamp::UNIX_EPOCH;
        let minutes = Duration::from_mins;
        let limited = |wait: u64| HostErrorKind::RateLimited {
            until: now + minutes(wait),
        };
        let down = || HostErrorKind::Unavailable {
            cause: "status 502".into(),
        };
        let delays = OutagePolicy {
            first_delay: Duration::from_secs(2),
            longest_delay: minutes(10),
            max_outage: Duration::from_hours(12),
        };
        for (kind, failures, waited, expected) in [
            (down(), 1, Duration::ZERO, Some(Duration::from_secs(1))),
            (down(), 30, Duration::ZERO, Some(minutes(5))),
            (down(), 30, minutes(55), Some(minutes(5))),
            (down(), 30, minutes(56), None),
            (limited(20), 1, Duration::ZERO, Some(minutes(20))),
            (limited(0), 1, Duration::ZERO, Some(Duration::from_secs(1))),
            (limited(60), 1, Duration::ZERO, Some(minutes(60))),
            (limited(61), 1, Duration::ZERO, None),
            (limited(20), 1, minutes(41), None),
            (HostErrorKind::Archived, 1, Duration::ZERO, None),
        ] {
            let error = ScmError::Host(HostError {
                request: "GET /x".into(),
                request_id: None,
                kind: kind.clone(),
            });
            let wait = host_wait(&error, failures, waited, now, (&delays, Jitter::new(0)));
            assert_eq!(wait, expected, "{kind:?} {failures} {waited:?}");
        }
        let io = ScmError::Damaged {
            path: "x".into(),
            why: "y".into(),
        };
        let wait = host_wait(&io, 1, Duration::ZERO, now, (&delays, Jitter::new(0)));
        assert_eq!(wait, None);
    }
}
