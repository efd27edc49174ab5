//! Expiry of credentials, computed from given times.

use jiff::Timestamp;
use jiff::tz::TimeZone;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Returns the remaining whole days, or zero after the expiry.
pub(super) fn days_left(expires: Timestamp, now: Timestamp) -> i64 {
    let left = expires
        .as_millisecond()
        .saturating_sub(now.as_millisecond());
    (left / DAY_MS).max(0)
}

/// Formats the day as `YYYY-MM-DD` in UTC.
pub fn format_date(moment: Timestamp) -> String {
    moment.to_zoned(TimeZone::UTC).date().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn days_are_whole() {
        let now = at("2026-03-01T10:00:00Z");
        for (expires, days) in [
            ("2026-03-02T09:59:59.999Z", 0),
            ("2026-03-02T10:00:00Z", 1),
            ("2027-03-01T10:00:00Z", 365),
            ("2026-03-01T10:00:00Z", 0),
            ("2020-01-01T00:00:00Z", 0),
        ] {
            assert_eq!(days_left(at(expires), now), days, "{expires}");
        }
    }
}
