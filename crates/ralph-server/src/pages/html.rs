//! Responses with a small page.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{Html, IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use crate::auth::header_text;
use crate::problem::AUTHENTICATION_SCHEME;

/// Marks the response of an error that is a page, not a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ErrorPage;

/// Returns whether the client of a request shows pages.
pub(super) fn accepts_html(headers: &HeaderMap) -> bool {
    headers
        .get(header::ACCEPT)
        .and_then(header_text)
        .is_some_and(|accept| accept.contains("text/html"))
}

/// Returns whether a request without a session gets the page that says how to sign in: a browser opens a
/// page. Programs and the dashboard get a problem.
pub(crate) fn opens_page(parts: &Parts) -> bool {
    let path = parts.uri.path();
    let is_interface = path == "/metrics" || path == "/api" || path.starts_with("/api/");
    parts.method == Method::GET && accepts_html(&parts.headers) && !is_interface
}

/// Returns the page that says how to sign in.
pub(crate) fn sign_in_page() -> Response {
    unauthorized_page("Sign in to ralph", include_str!("sign_in.html"))
}

/// Returns a page for a request without a valid credential.
pub(super) fn unauthorized_page(title: &str, content: &str) -> Response {
    let mut response = page_response(StatusCode::UNAUTHORIZED, title, content);
    response.extensions_mut().insert(ErrorPage);
    let headers = response.headers_mut();
    headers.insert(header::WWW_AUTHENTICATE, AUTHENTICATION_SCHEME);
    response
}

/// Returns a page with this title and content, which is HTML. Its styles and scripts are used because the
/// policy has their digests.
pub(super) fn page_response(status: StatusCode, title: &str, content: &str) -> Response {
    let page = include_str!("layout.html");
    let page = page.replace("{title}", title).replace("{content}", content);
    let policy = format!(
        "default-src 'none'; style-src {styles}; script-src {scripts}; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
        styles = sources(&page, "style"),
        scripts = sources(&page, "script"),
    );
    let mut response = (status, Html(page)).into_response();
    let policy = HeaderValue::try_from(policy).expect("a policy consists of visible characters");
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

/// Returns the digests of the inline elements with this name, as sources of a policy.
fn sources(page: &str, element: &str) -> String {
    let (start, end) = (format!("<{element}>"), format!("</{element}>"));
    let parts = page.split(&start).skip(1);
    let texts = parts.filter_map(|part| part.split(&end).next());
    let digests: Vec<String> = texts.map(digest_source).collect();
    if digests.is_empty() {
        "'none'".to_owned()
    } else {
        digests.join(" ")
    }
}

fn digest_source(text: &str) -> String {
    let digest = STANDARD.encode(Sha256::digest(text.as_bytes()));
    format!("'sha256-{digest}'")
}
