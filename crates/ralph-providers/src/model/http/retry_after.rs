//! Parses the wait that a provider requests, in all the formats in use.

use std::time::Duration;

use hyper::header::HeaderMap;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use ralph_core::parse_value;
use ralph_guest::available;
use serde_json::Value;

/// Prefix and suffix around `remaining` and `reset` in rate limit headers.
const RATE_LIMIT_HEADERS: [(&str, &str); 8] = [
    ("x-ratelimit-", "-requests"),
    ("x-ratelimit-", "-tokens"),
    ("x-ratelimit-", ""),
    ("ratelimit-", ""),
    ("anthropic-ratelimit-requests-", ""),
    ("anthropic-ratelimit-tokens-", ""),
    ("anthropic-ratelimit-input-tokens-", ""),
    ("anthropic-ratelimit-output-tokens-", ""),
];

/// Returns the wait requested by the headers and body of an error response.
pub(super) fn requested_wait(
    headers: &HeaderMap,
    body: &Value,
    now: Timestamp,
) -> Option<Duration> {
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|value| available(value.to_str()))
    };
    if let Some(milliseconds) = text("retry-after-ms").and_then(parse_value) {
        return Some(Duration::from_millis(milliseconds));
    }
    text("retry-after")
        .and_then(|value| parse_wait(value, now))
        .or_else(|| {
            text("anthropic-ratelimit-unified-reset").and_then(|value| parse_wait(value, now))
        })
        .or_else(|| wait_in_body(body))
        .or_else(|| latest_reset(headers, now))
}

/// Returns the latest reset of the exhausted limits, or of all limits if none is marked exhausted.
fn latest_reset(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: String| {
        headers
            .get(name)
            .and_then(|value| available(value.to_str()))
    };
    let mut exhausted = None;
    let mut any = None;
    for (before, after) in RATE_LIMIT_HEADERS {
        let reset = text(format!("{before}reset{after}")).and_then(|value| parse_wait(value, now));
        let Some(reset) = reset else { continue };
        any = any.max(Some(reset));
        if text(format!("{before}remaining{after}")) == Some("0") {
            exhausted = exhausted.max(Some(reset));
        }
    }
    exhausted.or(any)
}

/// Parses a duration or a point in time: seconds, `6m0s`, a date, or seconds since 1970.
fn parse_wait(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        return wait_from_number(number, now);
    }
    if let Some(duration) = parse_duration(text) {
        return Some(duration);
    }
    let at = parse_value::<Timestamp>(text)
        .or_else(|| available(rfc2822::DateTimeParser::new().parse_timestamp(text)))?;
    Some(until(at, now))
}

fn until(at: Timestamp, now: Timestamp) -> Duration {
    // A reset in the past needs no wait.
    Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO)
}

/// Small numbers are seconds to wait, large ones are timestamps in seconds or milliseconds.
fn wait_from_number(number: f64, now: Timestamp) -> Option<Duration> {
    const YEAR_2001: f64 = 1e9;
    let seconds = if number >= YEAR_2001 * 1000.0 {
        number / 1000.0
    } else {
        number
    };
    let duration = available(Duration::try_from_secs_f64(seconds))?;
    if seconds < YEAR_2001 {
        return Some(duration);
    }
    let at = available(Timestamp::from_second(available(i64::try_from(
        duration.as_secs(),
    ))?))?;
    Some(until(at, now))
}

/// Parses `1s`, `6m0s`, `1h2m3.5s`, `12ms`.
fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = parse_value(&rest[..digits])?;
        rest = &rest[digits..];
        let letters = rest
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(rest.len());
        let seconds = match &rest[..letters] {
            "d" => number * 86_400.0,
            "h" => number * 3600.0,
            "m" => number * 60.0,
            "s" => number,
            "ms" => number / 1000.0,
            _ => return None,
        };
        total += available(Duration::try_from_secs_f64(seconds))?;
        rest = &rest[letters..];
    }
    (!text.is_empty()).then_some(total)
}

/// Reads Gemini's retry field, or the wait in another provider's message: `Please try again in 6m0s.`
fn wait_in_body(body: &Value) -> Option<Duration> {
    let error = body.get(0).unwrap_or(body).get("error")?;
    let details = error["details"].as_array().map_or(&[][..], Vec::as_slice);
    let delay = details
        .iter()
        .find_map(|detail| detail["retryDelay"].as_str())
        .and_then(parse_duration);
    delay.or_else(|| {
        let message = error["message"].as_str()?;
        let (_, after) = message.split_once("try again in ")?;
        let word = after.split_whitespace().next()?;
        parse_duration(word.trim_end_matches(['.', ',']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{HeaderName, HeaderValue};
    use serde_json::json;

    fn wait_for(pairs: &[(&'static str, &'static str)], body: &Value) -> Option<Duration> {
        let headers = pairs
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .collect();
        requested_wait(&headers, body, "2026-01-01T12:00:00Z".parse().unwrap())
    }

    #[test]
    fn waits_are_read_from_headers() {
        let seconds = |number| Some(Duration::from_secs_f64(number));
        for (pairs, expected) in [
            (vec![("retry-after", "20")], seconds(20.0)),
            (vec![("retry-after", "1.5")], seconds(1.5)),
            (
                vec![("retry-after", "Thu, 01 Jan 2026 12:01:30 GMT")],
                seconds(90.0),
            ),
            (
                vec![("retry-after", "Thu, 01 Jan 2026 11:00:00 GMT")],
                seconds(0.0),
            ),
            (
                vec![("retry-after-ms", "250"), ("retry-after", "9")],
                seconds(0.25),
            ),
            (
                vec![
                    ("x-ratelimit-reset-requests", "6m0s"),
                    ("x-ratelimit-remaining-requests", "0"),
                    ("x-ratelimit-reset-tokens", "1h2m3.5s"),
                    ("x-ratelimit-remaining-tokens", "10"),
                ],
                seconds(360.0),
            ),
            (vec![("x-ratelimit-reset-tokens", "120ms")], seconds(0.12)),
            (vec![("x-ratelimit-reset", "1767268860")], seconds(60.0)),
            (vec![("x-ratelimit-reset", "1767268860000")], seconds(60.0)),
            (
                vec![
                    (
                        "anthropic-ratelimit-input-tokens-reset",
                        "2026-01-01T12:00:42Z",
                    ),
                    ("anthropic-ratelimit-input-tokens-remaining", "0"),
                    ("anthropic-ratelimit-requests-reset", "2026-01-01T12:09:00Z"),
                    ("anthropic-ratelimit-requests-remaining", "49"),
                ],
                seconds(42.0),
            ),
            (
                vec![("anthropic-ratelimit-unified-reset", "1767272400")],
                seconds(3600.0),
            ),
            (vec![("retry-after", "soon")], None),
            (vec![], None),
        ] {
            assert_eq!(wait_for(&pairs, &Value::Null), expected, "{pairs:?}");
        }
    }

    #[test]
    fn waits_are_read_from_bodies() {
        let gemini = json!({"error": {"details": [{"@type": "x"}, {"retryDelay": "34.5s"}]}});
        let openai =
            json!({"error": {"message": "Limit reached. Please try again in 6m0s. Visit"}});
        for (body, seconds) in [
            (gemini.clone(), Some(34.5)),
            (json!([gemini]), Some(34.5)),
            (openai, Some(360.0)),
            (json!({"error": {"message": "no"}}), None),
        ] {
            assert_eq!(wait_for(&[], &body), seconds.map(Duration::from_secs_f64));
        }
    }
}
