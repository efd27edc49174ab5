//! The kinds of responses.

use hyper::header::HeaderValue;

use super::*;

fn kind(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> HostErrorKind {
    let headers = headers
        .iter()
        .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
        .collect();
    let now = Timestamp::from_second(1_000_000).unwrap();
    let status = StatusCode::from_u16(status).unwrap();
    kind_of_response(status, &headers, body.as_bytes(), now)
}

#[test]
fn every_form_of_a_limit_has_an_end() {
    let until = |second| HostErrorKind::RateLimited {
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
        // A date, by the clock of the server.
        (
            429,
            &[
                ("retry-after", "Mon, 12 Jan 1970 14:00:00 GMT"),
                ("date", "Mon, 12 Jan 1970 13:59:00 GMT"),
            ],
            "",
            1_000_060,
        ),
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
        HostErrorKind::Forbidden {
            message: message(),
            permission: Some("issues=read".into()),
            sso_url: None,
        }
    );
    let sso = "required; url=https://github.com/orgs/o/sso?x=1";
    let HostErrorKind::Forbidden { sso_url, .. } = kind(403, &[("x-github-sso", sso)], "") else {
        panic!("not forbidden");
    };
    assert_eq!(
        sso_url.as_deref(),
        Some("https://github.com/orgs/o/sso?x=1")
    );
}

#[test]
fn every_status_has_its_kind() {
    let body = |message: &str| format!(r#"{{"message":"{message}"}}"#);
    let archived = body("Repository was archived so is read-only.");
    let exists = r#"{"message":"Validation Failed","errors":[{"message":"A pull request already exists for o:b."},{"field":"base","code":"invalid","message":""}]}"#;
    for (status, body, expected) in [
        (403, archived.as_str(), "the repository is archived"),
        (
            404,
            &body("Not Found"),
            "not found, or no access: Not Found",
        ),
        (
            410,
            &body("Issues are disabled"),
            "rejected: Issues are disabled",
        ),
        (
            422,
            exists,
            "rejected: Validation Failed: A pull request already exists for o:b.: base is invalid",
        ),
        (
            451,
            &body("Blocked"),
            "not permitted: blocked for legal reasons: Blocked",
        ),
        (502, "<html>", "status 502: no description"),
        (418, "", "status 418: no description"),
    ] {
        assert_eq!(kind(status, &[], body).to_string(), expected);
    }
}

#[test]
fn errors_of_graphql_have_kinds() {
    let kind = |kind: Option<&str>, message: &str| {
        let error = GraphQlError {
            kind: kind.map(str::to_owned),
            message: message.into(),
        };
        kind_of_graphql(&[error], &HeaderMap::new(), Timestamp::UNIX_EPOCH)
            .unwrap()
            .to_string()
    };
    assert_eq!(kind(Some("NOT_FOUND"), "x"), "not found, or no access: x");
    assert_eq!(kind(Some("FORBIDDEN"), "x"), "not permitted: x");
    assert_eq!(kind(None, "x"), "rejected: x");
    let limited = kind(Some("RATE_LIMITED"), "x");
    assert_eq!(limited, "rate limited until 1970-01-01T00:01:00Z");
}
