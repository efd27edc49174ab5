//! Expiry of credentials, computed from given times.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::AuthMode;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Returns the assumed expiry of a credential without a known one: a year for a subscription's
/// token, ten years for a key.
pub fn default_expiry(mode: AuthMode, now: Timestamp) -> Timestamp {
    let days = match mode {
        AuthMode::Oauth => 365,
        AuthMode::ApiKey | AuthMode::Gateway => 3650,
    };
    let end = now.as_millisecond().saturating_add(days * DAY_MS);
    Timestamp::from_millisecond(end).unwrap_or(Timestamp::MAX)
}

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
    fn a_credential_without_expiry_gets_a_default() {
        let now = at("2026-03-01T10:00:00Z");
        assert_eq!(
            format_date(default_expiry(AuthMode::Oauth, now)),
            "2027-03-01"
        );
        assert_eq!(
            format_date(default_expiry(AuthMode::ApiKey, now)),
            "2036-02-27"
        );
        assert_eq!(
            format_date(default_expiry(AuthMode::Gateway, now)),
            "2036-02-27"
        );
        assert_eq!(
            default_expiry(AuthMode::Oauth, Timestamp::MAX),
            Timestamp::MAX
        );
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
