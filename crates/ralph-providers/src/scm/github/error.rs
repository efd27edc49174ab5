//! Converts failures of GitHub's API to the kinds of the port.

use hyper::StatusCode;
use hyper::header::{DATE, HeaderMap, RETRY_AFTER};
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};
use ralph_core::ports::HostErrorKind;
use ralph_guest::available;
use serde::Deserialize;

use super::response::header;
use crate::http::{HttpError, certificate};

/// The wait after a secondary limit without a `Retry-After`, in seconds, as GitHub documents it.
const DEFAULT_WAIT_SECONDS: i64 = 60;

/// The longest accepted wait, in seconds: a wrong header must not block the API for days.
const MAX_WAIT_SECONDS: i64 = 24 * 60 * 60;

/// The number of characters of GitHub's message that are reported.
const MAX_MESSAGE_CHARS: usize = 200;

/// The fix for a certificate of another host.
const NAME_FIX: &str = "check the host of the repository, `github.api_url`, and the proxy";

/// GitHub's description of an error.
#[derive(Debug, Deserialize)]
struct ErrorBody {
    message: String,
    #[serde(default)]
    errors: serde_json::Value,
}

/// An error of a GraphQL document.
#[derive(Debug, Deserialize)]
pub(super) struct GraphQlError {
    #[serde(rename = "type")]
    kind: Option<String>,
    message: String,
}

/// Returns the error of a request without a response.
pub(super) fn kind_of_http(error: &HttpError) -> HostErrorKind {
    match certificate::find_problem(error, NAME_FIX) {
        Some(problem) => HostErrorKind::Certificate {
            what: problem.what,
            fix: problem.fix.to_owned(),
        },
        None => HostErrorKind::Unavailable {
            cause: error.root_cause(),
        },
    }
}

/// Returns the error of a response whose status is not a success.
pub(super) fn kind_of_response(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    now: Timestamp,
) -> HostErrorKind {
    let message = message(body);
    match status.as_u16() {
        401 => HostErrorKind::Unauthorized { message },
        403 if is_archived(&message) => HostErrorKind::Archived,
        403 | 429 => match limit_end(headers, &message, now) {
            Some(until) => HostErrorKind::RateLimited { until },
            None => HostErrorKind::Forbidden {
                message,
                permission: missing_permission(headers),
                sso_url: sso_url(headers),
            },
        },
        404 => HostErrorKind::NotFound { message },
        409 | 410 | 422 => HostErrorKind::Rejected { message },
        451 => HostErrorKind::Forbidden {
            message: format!("blocked for legal reasons: {message}"),
            permission: None,
            sso_url: None,
        },
        500..=599 => HostErrorKind::Unavailable {
            cause: format!("status {}: {message}", status.as_u16()),
        },
        other => HostErrorKind::Unexpected {
            why: format!("status {other}: {message}"),
        },
    }
}

/// Returns the kind of the first error of a GraphQL document.
pub(super) fn kind_of_graphql(
    errors: &[GraphQlError],
    headers: &HeaderMap,
    now: Timestamp,
) -> Option<HostErrorKind> {
    let error = errors.first()?;
    let message = one_line(&error.message);
    Some(match error.kind.as_deref() {
        Some("NOT_FOUND") => HostErrorKind::NotFound { message },
        _ if is_archived(&message) => HostErrorKind::Archived,
        Some("FORBIDDEN" | "INSUFFICIENT_SCOPES") => HostErrorKind::Forbidden {
            message,
            permission: None,
            sso_url: None,
        },
        Some("RATE_LIMITED" | "RATE_LIMIT") => HostErrorKind::RateLimited {
            until: limit_end(headers, &message, now)
                .unwrap_or_else(|| end_of_wait(DEFAULT_WAIT_SECONDS, now)),
        },
        Some("SERVICE_UNAVAILABLE" | "INTERNAL") => HostErrorKind::Unavailable { cause: message },
        Some(_) | None => HostErrorKind::Rejected { message },
    })
}

fn is_archived(message: &str) -> bool {
    message.contains("archived so ") && message.contains("read-only")
}

/// Returns GitHub's message in one bounded line, with the reasons of a rejected value.
fn message(body: &[u8]) -> String {
    let Ok(body) = serde_json::from_slice::<ErrorBody>(body) else {
        // A proxy or a load balancer answered.
        return "no description".to_owned();
    };
    let reasons = body.errors.as_array().into_iter().flatten();
    let reasons = reasons.filter_map(|error| {
        let text = |name: &str| error[name].as_str().filter(|text| !text.is_empty());
        let described = text("message").map(str::to_owned);
        let coded = || Some(format!("{} is {}", text("field")?, text("code")?));
        described.or_else(coded)
    });
    let texts: Vec<String> = std::iter::once(body.message).chain(reasons).collect();
    one_line(&texts.join(": "))
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(MAX_MESSAGE_CHARS).collect()
}

/// Returns the end of the exceeded limit, if the response reports one.
fn limit_end(headers: &HeaderMap, message: &str, now: Timestamp) -> Option<Timestamp> {
    if let Some(until) = retry_after(headers, now) {
        return Some(until);
    }
    let number = |name| ralph_core::parse_value::<i64>(header(headers, name)?);
    let seconds = if number("x-ratelimit-remaining") == Some(0) {
        // The reset is a time of the server's clock.
        let server = sent_at(headers).unwrap_or(now);
        number("x-ratelimit-reset").map_or(DEFAULT_WAIT_SECONDS, |reset| {
            reset.saturating_sub(server.as_second())
        })
    } else if message.contains("rate limit") {
        DEFAULT_WAIT_SECONDS
    } else {
        return None;
    };
    Some(end_of_wait(seconds, now))
}

/// Returns the time before which the server wants no request.
pub(super) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Timestamp> {
    let value = header(headers, RETRY_AFTER.as_str())?;
    let seconds = if let Some(seconds) = ralph_core::parse_value::<i64>(value) {
        seconds
    } else {
        let end = available(DateTimeParser::new().parse_timestamp(value))?;
        // It is a time of the server's clock.
        let server = sent_at(headers).unwrap_or(now);
        end.as_second().saturating_sub(server.as_second())
    };
    Some(end_of_wait(seconds, now))
}

/// Returns the time at which the server sent a response.
pub(super) fn sent_at(headers: &HeaderMap) -> Option<Timestamp> {
    let date = header(headers, DATE.as_str())?;
    available(DateTimeParser::new().parse_timestamp(date))
}

fn end_of_wait(seconds: i64, now: Timestamp) -> Timestamp {
    let wait = SignedDuration::from_secs(seconds.clamp(1, MAX_WAIT_SECONDS));
    now.saturating_add(wait).unwrap_or(Timestamp::MAX)
}

/// Returns the permission that GitHub names for the request: that of a fine-grained token or App, or
/// else the scope of a classic token.
fn missing_permission(headers: &HeaderMap) -> Option<String> {
    let names = ["x-accepted-github-permissions", "x-accepted-oauth-scopes"];
    let value = names.into_iter().find_map(|name| header(headers, name))?;
    Some(value.chars().take(MAX_MESSAGE_CHARS).collect())
}

/// Returns the address in `X-GitHub-SSO: required; url=…`.
fn sso_url(headers: &HeaderMap) -> Option<Box<str>> {
    let value = header(headers, "x-github-sso")?;
    let url = value.split("url=").nth(1)?;
    url.starts_with("https://").then(|| url.into())
}

#[cfg(test)]
mod tests;
