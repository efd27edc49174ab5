//! Responses with a small page.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use crate::auth::header_text;

/// Returns whether the client of a request shows pages.
pub(crate) fn accepts_html(headers: &HeaderMap) -> bool {
    headers
        .get(header::ACCEPT)
        .and_then(header_text)
        .is_some_and(|accept| accept.contains("text/html"))
}

/// Returns a page with one message. The texts are part of this program.
pub(crate) fn message_page(status: StatusCode, title: &str, text: &str) -> Response {
    let page = include_str!("message.html");
    let page = page.replace("{title}", title).replace("{text}", text);
    page_response(status, page)
}

/// Returns a page. Its scripts run because the policy has their digests.
pub(crate) fn page_response(status: StatusCode, page: String) -> Response {
    let scripts: Vec<String> = inline_scripts(&page).map(script_source).collect();
    let scripts = if scripts.is_empty() {
        "'none'".to_owned()
    } else {
        scripts.join(" ")
    };
    let policy = format!(
        "default-src 'none'; script-src {scripts}; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    );
    let mut response = (status, Html(page)).into_response();
    let policy = HeaderValue::try_from(policy).expect("a policy consists of visible characters");
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

fn inline_scripts(page: &str) -> impl Iterator<Item = &str> {
    let parts = page.split("<script>").skip(1);
    parts.filter_map(|part| part.split("</script>").next())
}

fn script_source(script: &str) -> String {
    let digest = STANDARD.encode(Sha256::digest(script.as_bytes()));
    format!("'sha256-{digest}'")
}
