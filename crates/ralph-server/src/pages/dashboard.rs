//! The dashboard: the files that the build script has embedded, compressed.
//!
//! Every page has the same document; its address decides what the script in it shows. Files whose names
//! contain a digest of their content never change and are cached.

use std::io::Read as _;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use flate2::read::GzDecoder;

use super::html::accepts_html;
use super::start;
use crate::auth::random_secret;
use crate::context::ServerContext;
use crate::problem::Problem;

/// A file of the dashboard.
struct DashboardFile {
    /// Relative to the start page.
    path: &'static str,
    /// Compressed by gzip.
    compressed: &'static [u8],
}

const FILES: &[DashboardFile] = include!(concat!(env!("OUT_DIR"), "/dashboard_files.rs"));
const DOCUMENT: &str = "index.html";
/// The directory of the files whose names contain a digest.
const UNCHANGING: &str = "assets/";

/// Returns whether this build has a dashboard.
pub fn has_dashboard() -> bool {
    !FILES.is_empty()
}

/// Returns a page or a file of the dashboard.
pub(super) async fn page(State(context): State<ServerContext>, request: Request) -> Response {
    let path = request.uri().path().trim_start_matches('/');
    if let Some(file) = FILES.iter().find(|file| file.path == path)
        && path != DOCUMENT
    {
        return file_response(file, request.headers());
    }
    let is_page = path.is_empty() || accepts_html(request.headers());
    match FILES.iter().find(|file| file.path == DOCUMENT) {
        Some(document) if is_page => document_response(document, &context.web.base_path),
        None if path.is_empty() => start::page(),
        Some(_) | None => Problem::new(StatusCode::NOT_FOUND, "not-found", "there is no such page")
            .into_response(),
    }
}

fn file_response(file: &DashboardFile, headers: &HeaderMap) -> Response {
    let accepts_gzip = headers
        .get(header::ACCEPT_ENCODING)
        .is_some_and(|accepted| accepted.to_str().unwrap_or("").contains("gzip"));
    let mut response = if accepts_gzip {
        let encoding = [(header::CONTENT_ENCODING, "gzip")];
        (encoding, file.compressed).into_response()
    } else {
        decompressed(file).into_response()
    };
    let cache = if file.path.starts_with(UNCHANGING) {
        "private, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static(content_type(file.path));
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    response
}

/// Returns the document with the path prefix of the server. Styles that a script adds need the nonce.
fn document_response(document: &DashboardFile, base_path: &str) -> Response {
    let nonce = random_secret();
    let nonce = nonce.expose();
    let text = String::from_utf8_lossy(&decompressed(document)).replacen(
        "<head>",
        &format!(
            "<head>\n    <base href=\"{base_path}/\" />\n    <meta name=\"csp-nonce\" content=\"{nonce}\" />"
        ),
        1,
    );
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; \
         font-src 'self'; connect-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
    );
    let mut response = axum::response::Html(text).into_response();
    if let Ok(policy) = HeaderValue::try_from(policy) {
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

fn decompressed(file: &DashboardFile) -> Vec<u8> {
    let mut content = Vec::new();
    let mut decoder = GzDecoder::new(file.compressed);
    if let Err(error) = decoder.read_to_end(&mut content) {
        tracing::error!(%error, path = file.path, "a file of the dashboard is damaged");
    }
    content
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        Some("json" | "webmanifest") => "application/json",
        _ => "application/octet-stream",
    }
}
