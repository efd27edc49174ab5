//! Detects credentials in requests that the gate did not add.
//!
//! A host on the allowlist is open to everyone with an account there. A command with its own token
//! could upload data to that account, so the gate refuses such credentials in requests that it can
//! read.

use hyper::header::SET_COOKIE;
use hyper::{HeaderMap, Method, Uri};

use crate::audit::sanitize_text;

/// Headers that carry a credential.
const CREDENTIAL_HEADERS: [&str; 5] = [
    "authorization",
    "cookie",
    "cookie2",
    "authentication",
    "x-auth",
];
/// Suffixes of such headers: `x-api-key`, `private-token`, `x-amz-security-token`.
const CREDENTIAL_HEADER_SUFFIXES: [&str; 9] = [
    "-authorization",
    "api-key",
    "apikey",
    "-token",
    "_token",
    "-secret",
    "-password",
    "-credential",
    "-access-key",
];
/// Query parameters that carry a credential, in the form of `normalize_parameter`.
const CREDENTIAL_PARAMETERS: [&str; 18] = [
    "accesskey",
    "accesstoken",
    "apikey",
    "apitoken",
    "auth",
    "authorization",
    "authtoken",
    "bearer",
    "bearertoken",
    "clientsecret",
    "jwt",
    "oauthtoken",
    "password",
    "privatetoken",
    "secret",
    "sessiontoken",
    "subscriptionkey",
    "token",
];
/// Parameters that sign a request for an account. Download redirects contain them, so they are only
/// refused in requests that send data.
const SIGNATURE_PARAMETERS: [&str; 8] = [
    "awsaccesskeyid",
    "googleaccessid",
    "sig",
    "signature",
    "xamzcredential",
    "xamzsecuritytoken",
    "xamzsignature",
    "xgoogsignature",
];
/// The minimum length of a `key` parameter that counts as a credential.
const MIN_KEY_LENGTH: usize = 20;

/// Returns a description of the part of a request that carries a credential, if any.
pub(super) fn find_foreign_credential(
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Option<String> {
    let header = headers
        .keys()
        .find(|name| is_credential_header(name.as_str()));
    if let Some(name) = header {
        return Some(format!("the header `{}`", sanitize_text(name.as_str())));
    }
    let sends_data = !matches!(*method, Method::GET | Method::HEAD);
    let mut pairs = uri.query().unwrap_or_default().split(['&', ';']);
    let name = pairs.find_map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = normalize_parameter(name);
        let is_listed = |list: &[&str]| list.contains(&name.as_str());
        let is_credential = is_listed(&CREDENTIAL_PARAMETERS)
            || (name == "key" && value.len() >= MIN_KEY_LENGTH)
            || (sends_data && is_listed(&SIGNATURE_PARAMETERS));
        (is_credential && !value.is_empty()).then_some(name)
    })?;
    Some(format!("the query parameter `{}`", sanitize_text(&name)))
}

/// Removes cookies from a response, because the gate would refuse requests that send them back.
pub(super) fn strip_cookies(headers: &mut HeaderMap) {
    headers.remove(SET_COOKIE);
}

/// Returns whether a header carries a credential. `Proxy-Authorization` is excluded, because it is
/// never forwarded.
fn is_credential_header(name: &str) -> bool {
    name != "proxy-authorization"
        && (CREDENTIAL_HEADERS.contains(&name)
            || CREDENTIAL_HEADER_SUFFIXES
                .iter()
                .any(|suffix| name.ends_with(suffix)))
}

/// Returns a parameter name in normalized form: decoded, lowercase, without `-`, `_`, `.`
/// and brackets.
fn normalize_parameter(name: &str) -> String {
    let mut bytes = name.bytes();
    let mut decoded = String::new();
    while let Some(byte) = bytes.next() {
        let byte = if byte == b'%' {
            let digits = [bytes.next(), bytes.next()].map(Option::unwrap_or_default);
            str::from_utf8(&digits).map_or(b'?', |digits| {
                u8::from_str_radix(digits, 16).unwrap_or(b'?')
            })
        } else {
            byte
        };
        if !matches!(byte, b'-' | b'_' | b'.' | b'[' | b']') {
            decoded.push(char::from(byte.to_ascii_lowercase()));
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_in_request(method: &Method, path: &str, field: Option<(&str, &str)>) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert("user-agent", "pip/25".parse().unwrap());
        if let Some((name, value)) = field {
            let name: hyper::header::HeaderName = name.parse().unwrap();
            headers.insert(name, value.parse().unwrap());
        }
        find_foreign_credential(method, &path.parse().unwrap(), &headers)
    }

    #[test]
    fn headers_that_carry_a_credential_are_found() {
        for name in [
            "Authorization",
            "Cookie",
            "X-Api-Key",
            "Api-Key",
            "X-Goog-Api-Key",
            "Private-Token",
            "X-Auth-Token",
            "X-Amz-Security-Token",
            "X-Vault-Token",
            "X-JFrog-Art-Api-Key",
        ] {
            let expected = format!("the header `{}`", name.to_ascii_lowercase());
            let found = find_in_request(&Method::GET, "/simple/", Some((name, "x")));
            assert_eq!(found, Some(expected));
        }
        for name in [
            "accept",
            "range",
            "if-none-match",
            "npm-session",
            "git-protocol",
            "x-amz-content-sha256",
            "proxy-authorization",
        ] {
            assert_eq!(
                find_in_request(&Method::PUT, "/simple/", Some((name, "x"))),
                None,
                "{name}"
            );
        }
    }

    #[test]
    fn parameters_that_carry_a_credential_are_found() {
        let key = "/?key=AIzaSyA-0123456789012345678901234567890";
        for (method, path, expected) in [
            (Method::GET, "/?a=b&access_token=x", Some("accesstoken")),
            (Method::GET, "/?ACCESS%5FTOKEN=x", Some("accesstoken")),
            (Method::GET, "/?a;api-key=x", Some("apikey")),
            (Method::GET, "/?token=x", Some("token")),
            (Method::GET, "/?private_token=x", Some("privatetoken")),
            (Method::GET, key, Some("key")),
            (Method::GET, "/?key=short", None),
            (Method::GET, "/?token=", None),
            (Method::GET, "/token?service=registry&scope=pull", None),
            (Method::GET, "/?X-Amz-Signature=x", None),
            (Method::PUT, "/?X-Amz-Signature=x", Some("xamzsignature")),
            (Method::POST, "/?sig=x&se=1", Some("sig")),
            (Method::GET, "/info/refs?service=git-upload-pack", None),
            (Method::GET, "/", None),
        ] {
            let expected = expected.map(|name| format!("the query parameter `{name}`"));
            assert_eq!(
                find_in_request(&method, path, None),
                expected,
                "{method} {path}"
            );
        }
    }
}
