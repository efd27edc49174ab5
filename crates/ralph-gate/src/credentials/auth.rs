//! Replaces the placeholder token of a request with the credential.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use hyper::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, COOKIE, EXPECT, HOST, HeaderName, HeaderValue,
};

use ralph_core::secret::Secret;

use super::PlaceholderToken;
use super::route::{CredentialScheme, Route};
use crate::http::{header_text, strip_hop_by_hop};

const API_KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");
const BETA_HEADER: HeaderName = HeaderName::from_static("anthropic-beta");
/// The beta flag that marks a bearer token as an Anthropic login.
const LOGIN_BETA: &str = "oauth-2025-04-20";

/// Headers that can carry a credential, select the billed account or identify the caller.
const STRIPPED_HEADERS: [HeaderName; 14] = [
    HeaderName::from_static("api-key"),
    HeaderName::from_static("x-goog-api-key"),
    HeaderName::from_static("x-auth-token"),
    HeaderName::from_static("x-access-token"),
    HeaderName::from_static("private-token"),
    HeaderName::from_static("x-amz-security-token"),
    HeaderName::from_static("openai-organization"),
    HeaderName::from_static("openai-project"),
    HeaderName::from_static("forwarded"),
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-real-ip"),
    HeaderName::from_static("via"),
];

/// Returns whether a request carries the placeholder token and no other credential.
pub(super) fn carries_only_placeholder(
    headers: &HeaderMap,
    placeholder: &PlaceholderToken,
) -> bool {
    let keys = headers.get_all(API_KEY_HEADER).iter();
    let keys = keys.map(|value| placeholder.matches(value.as_bytes()));
    let logins = headers.get_all(AUTHORIZATION).iter();
    let logins = logins.map(|value| authorization_matches(value.as_bytes(), placeholder));
    let mut count = 0;
    let all_match = keys
        .chain(logins)
        .inspect(|_| count += 1)
        .all(|matches| matches);
    all_match && count > 0
}

fn authorization_matches(value: &[u8], placeholder: &PlaceholderToken) -> bool {
    let Some(space) = value.iter().position(|b| *b == b' ') else {
        return false;
    };
    let (scheme, rest) = value.split_at(space);
    let rest = rest.trim_ascii();
    if scheme.eq_ignore_ascii_case(b"bearer") || scheme.eq_ignore_ascii_case(b"token") {
        return placeholder.matches(rest);
    }
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return false;
    }
    // The password is the placeholder token; the user name does not matter.
    STANDARD.decode(rest).is_ok_and(|pair| {
        let colon = pair.iter().position(|b| *b == b':');
        colon.is_some_and(|at| placeholder.matches(&pair[at + 1..]))
    })
}

/// Removes headers that must not be forwarded and adds the credential. Returns `None` if the
/// credential is not a valid header value.
pub(super) fn replace_credentials(
    headers: &mut HeaderMap,
    route: &Route,
    secret: &Secret,
) -> Option<()> {
    strip_hop_by_hop(headers);
    for name in [
        AUTHORIZATION,
        API_KEY_HEADER,
        COOKIE,
        EXPECT,
        CONTENT_LENGTH,
        ACCEPT_ENCODING,
    ] {
        headers.remove(name);
    }
    for name in STRIPPED_HEADERS {
        headers.remove(name);
    }
    // A compressed response could neither be metered nor searched for the credential.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.insert(HOST, route.upstream.host_header.clone());
    let secret = secret.expose();
    let (name, value) = match route.kind {
        CredentialScheme::ApiKey => (API_KEY_HEADER, secret.to_owned()),
        CredentialScheme::Bearer => (AUTHORIZATION, format!("Bearer {secret}")),
        CredentialScheme::AnthropicLogin => {
            add_login_beta(headers)?;
            (AUTHORIZATION, format!("Bearer {secret}"))
        }
        CredentialScheme::GitBasic => {
            let pair = STANDARD.encode(format!("x-access-token:{secret}"));
            (AUTHORIZATION, format!("Basic {pair}"))
        }
    };
    let Ok(mut value) = HeaderValue::try_from(value) else {
        return None;
    };
    value.set_sensitive(true);
    headers.insert(name, value);
    Some(())
}

/// Returns the Anthropic beta flags of a request.
pub(super) fn betas(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers
        .get_all(BETA_HEADER)
        .iter()
        .filter_map(header_text)
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|beta| !beta.is_empty())
}

/// Adds the login flag to the beta flags of a request.
fn add_login_beta(headers: &mut HeaderMap) -> Option<()> {
    let present: Vec<&str> = betas(headers).filter(|beta| *beta != LOGIN_BETA).collect();
    let mut all = present.join(",");
    if !all.is_empty() {
        all.push(',');
    }
    all.push_str(LOGIN_BETA);
    let Ok(value) = HeaderValue::try_from(all) else {
        return None;
    };
    headers.insert(BETA_HEADER, value);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, value.parse().unwrap());
        }
        headers
    }

    fn header_lines(headers: &HeaderMap) -> Vec<String> {
        let mut shown: Vec<_> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        shown.sort();
        shown
    }

    #[test]
    fn only_the_placeholder_token_is_accepted() {
        let placeholder = PlaceholderToken::random("sk-", 20, "");
        let p = placeholder.as_str();
        let bearer = format!("Bearer {p}");
        let basic = format!("Basic {}", STANDARD.encode(format!("git:{p}")));
        let short = format!("Bearer {}", &p[..22]);
        for (pairs, ours) in [
            (&[("x-api-key", p)][..], true),
            (&[("authorization", bearer.as_str())], true),
            (&[("authorization", basic.as_str())], true),
            (
                &[("x-api-key", p), ("authorization", bearer.as_str())],
                true,
            ),
            (&[], false),
            (&[("x-api-key", "sk-other")], false),
            (&[("x-api-key", p), ("x-api-key", "sk-other")], false),
            (
                &[("x-api-key", p), ("authorization", "Bearer sk-other")],
                false,
            ),
            (&[("authorization", short.as_str())], false),
            (&[("authorization", p)], false),
            (&[("authorization", "Basic !!!")], false),
            (&[("cookie", p)], false),
        ] {
            assert_eq!(
                carries_only_placeholder(&headers(pairs), &placeholder),
                ours,
                "{pairs:?}"
            );
        }
    }

    #[test]
    fn the_credential_replaces_all_others() {
        let secret = || Secret::new("real-secret".to_owned());
        let inbound = [
            ("authorization", "Bearer phantom"),
            ("x-api-key", "phantom"),
            ("cookie", "a=b"),
            ("openai-organization", "org"),
            ("x-forwarded-for", "1.2.3.4"),
            ("connection", "x-hop"),
            ("x-hop", "1"),
            ("accept-encoding", "gzip"),
            ("anthropic-beta", "a-1, b-2"),
            ("anthropic-version", "2023-06-01"),
        ];
        for (route, expected) in [
            (Route::anthropic_key(secret()), "x-api-key: real-secret"),
            (Route::openai(secret()), "authorization: Bearer real-secret"),
        ] {
            let mut headers = headers(&inbound);
            let route = route.unwrap();
            replace_credentials(&mut headers, &route, &secret()).unwrap();
            let mut all = vec![
                "accept-encoding: identity".to_owned(),
                "anthropic-beta: a-1, b-2".to_owned(),
                "anthropic-version: 2023-06-01".to_owned(),
                format!("host: {}", route.endpoint().host),
                expected.to_owned(),
            ];
            all.sort();
            assert_eq!(header_lines(&headers), all);
        }
        let login = Route::anthropic_login(secret()).unwrap();
        for (before, after) in [
            ("a-1, b-2", "a-1,b-2,oauth-2025-04-20"),
            ("oauth-2025-04-20,c-3", "c-3,oauth-2025-04-20"),
        ] {
            let mut headers = headers(&[("anthropic-beta", before)]);
            replace_credentials(&mut headers, &login, &secret()).unwrap();
            assert_eq!(headers[BETA_HEADER], after);
            assert_eq!(headers[AUTHORIZATION], "Bearer real-secret");
        }
    }
}
