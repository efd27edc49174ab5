//! Errors of the GitHub API.

use hyper::StatusCode;
use hyper::header::HeaderMap;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::transport::header;
use crate::http::{HttpError, certificate};

/// The wait after a secondary limit without a `Retry-After`, in seconds, as GitHub documents it.
const DEFAULT_WAIT_SECONDS: i64 = 60;

/// The longest accepted wait, in seconds: a wrong header must not block the API for days.
const MAX_WAIT_SECONDS: i64 = 24 * 60 * 60;

/// The number of characters of GitHub's message that are reported.
const MAX_MESSAGE_CHARS: usize = 200;

/// The fix for a certificate of another host.
const NAME_FIX: &str = "check the host of the repository, `github.api_url`, and the proxy";

/// A request to GitHub failed.
#[derive(Debug, thiserror::Error)]
#[error("{request} failed: {kind}{}", format_request_id(request_id.as_deref()))]
pub struct GitHubError {
    /// The method and the path, such as `GET /user`.
    pub request: String,
    /// GitHub's id of the request, which its support asks for.
    pub request_id: Option<String>,
    pub kind: GitHubErrorKind,
}

fn format_request_id(id: Option<&str>) -> String {
    id.map_or_else(String::new, |id| format!(" (request id {id})"))
}

/// The kind of an error.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum GitHubErrorKind {
    /// The credential is not valid, or has expired.
    #[error("status 401: {message}")]
    Unauthorized { message: String },
    /// The credential was rejected, and the clock of this machine differs from GitHub's.
    #[error("status 401: the clock of this machine is {seconds} s {}", if *is_ahead { "ahead" } else { "behind" })]
    WrongClock { seconds: u64, is_ahead: bool },
    /// The credential does not permit the request.
    #[error("status 403: {message}")]
    Forbidden {
        message: String,
        /// The missing permission or scope in GitHub's notation, such as `pull_requests=read`.
        permission: Option<String>,
        /// The page on which the user authorises the token for an organisation's single sign-on.
        sso_url: Option<String>,
    },
    /// The object does not exist, or the credential may not read it.
    #[error("status 404: {message}")]
    NotFound { message: String },
    /// A limit is exceeded. No request is sent before `until`.
    #[error("rate limited until {until}")]
    RateLimited { until: Timestamp },
    /// The response redirects to another server, which does not get the credential.
    #[error("redirected to another server")]
    ForeignRedirect,
    /// The certificate of the server is not trusted.
    #[error("the certificate of the server {what}")]
    Certificate { what: String, fix: &'static str },
    /// The server cannot be reached, or fails.
    #[error("{cause}")]
    Unavailable { cause: String },
    /// The response is not one that the API documents.
    #[error("{why}")]
    Unexpected { why: String },
    /// The key of the App cannot be used.
    #[error("the key of the App cannot sign a request")]
    Signature,
}

/// GitHub's description of an error.
#[derive(Debug, Deserialize)]
struct ErrorBody {
    message: String,
}

impl GitHubErrorKind {
    /// Returns the error of a request without a response.
    pub(super) fn from_http(error: &HttpError) -> Self {
        match certificate::find_problem(error, NAME_FIX) {
            Some(problem) => Self::Certificate {
                what: problem.what,
                fix: problem.fix,
            },
            None => Self::Unavailable {
                cause: error.root_cause(),
            },
        }
    }

    /// Returns the error of a response whose status is not a success.
    pub(super) fn from_response(
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Self {
        let message = message(body);
        match status.as_u16() {
            401 => Self::Unauthorized { message },
            403 | 429 => match limit_end(headers, &message, now) {
                Some(until) => Self::RateLimited { until },
                None => Self::Forbidden {
                    message,
                    permission: missing_permission(headers),
                    sso_url: sso_url(headers),
                },
            },
            404 => Self::NotFound { message },
            500..=599 => Self::Unavailable {
                cause: format!("status {}: {message}", status.as_u16()),
            },
            other => Self::Unexpected {
                why: format!("status {other}: {message}"),
            },
        }
    }
}

/// Returns GitHub's message in one bounded line.
fn message(body: &[u8]) -> String {
    let text = match serde_json::from_slice::<ErrorBody>(body) {
        Ok(body) => body.message,
        // A proxy or a load balancer answered.
        Err(_) => return "no description".to_owned(),
    };
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(MAX_MESSAGE_CHARS).collect()
}

/// Returns the end of the exceeded limit, if the response reports one.
fn limit_end(headers: &HeaderMap, message: &str, now: Timestamp) -> Option<Timestamp> {
    let number = |name| ralph_core::parse_value::<i64>(header(headers, name)?);
    let seconds = if let Some(seconds) = number("retry-after") {
        seconds
    } else if number("x-ratelimit-remaining") == Some(0) {
        number("x-ratelimit-reset").map_or(DEFAULT_WAIT_SECONDS, |reset| {
            reset.saturating_sub(now.as_second())
        })
    } else if message.contains("rate limit") {
        DEFAULT_WAIT_SECONDS
    } else {
        return None;
    };
    let wait = SignedDuration::from_secs(seconds.clamp(1, MAX_WAIT_SECONDS));
    Some(now.saturating_add(wait).unwrap_or(Timestamp::MAX))
}

/// Returns the permission that GitHub names for the request: that of a fine-grained token or App, or
/// else the scope of a classic token.
fn missing_permission(headers: &HeaderMap) -> Option<String> {
    let names = ["x-accepted-github-permissions", "x-accepted-oauth-scopes"];
    let value = names.into_iter().find_map(|name| header(headers, name))?;
    Some(value.chars().take(MAX_MESSAGE_CHARS).collect())
}

/// Returns the address in `X-GitHub-SSO: required; url=…`.
fn sso_url(headers: &HeaderMap) -> Option<String> {
    let value = header(headers, "x-github-sso")?;
    let url = value.split("url=").nth(1)?;
    url.starts_with("https://").then(|| url.to_owned())
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn kind(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> GitHubErrorKind {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
            .collect();
        let now = Timestamp::from_second(1_000_000).unwrap();
        let status = StatusCode::from_u16(status).unwrap();
        GitHubErrorKind::from_response(status, &headers, body.as_bytes(), now)
    }

    #[test]
    fn every_form_of_a_limit_has_an_end() {
        let until = |second| GitHubErrorKind::RateLimited {
            until: Timestamp::from_second(second).unwrap(),
        };
        let secondary = r#"{"message":"You have exceeded a secondary rate limit."}"#;
        for (status, headers, body, expected) in [
            (403, &[("retry-after", "30")][..], secondary, 1_000_030),
            (429, &[("retry-after", "30")], "", 1_000_030),
            (403, &[], secondary, 1_000_060),
            (
                403,
                &[
                    ("x-ratelimit-remaining", "0"),
                    ("x-ratelimit-reset", "1000500"),
                ],
                "",
                1_000_500,
            ),
            (
                429,
                &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1")],
                "",
                1_000_001,
            ),
            (429, &[("retry-after", "99999999999")], "", 1_086_400),
        ] {
            assert_eq!(kind(status, headers, body), until(expected));
        }
    }

    #[test]
    fn a_refusal_names_the_permission() {
        let message = || "Resource not accessible by personal access token".to_owned();
        let body = format!(r#"{{"message":"{}"}}"#, message());
        assert_eq!(
            kind(
                403,
                &[("x-accepted-github-permissions", "issues=read")],
                &body
            ),
            GitHubErrorKind::Forbidden {
                message: message(),
                permission: Some("issues=read".into()),
                sso_url: None,
            }
        );
        let sso = "required; url=https://github.com/orgs/o/sso?x=1";
        let GitHubErrorKind::Forbidden { sso_url, .. } = kind(403, &[("x-github-sso", sso)], "")
        else {
            panic!("not forbidden");
        };
        assert_eq!(
            sso_url.as_deref(),
            Some("https://github.com/orgs/o/sso?x=1")
        );
    }
}
