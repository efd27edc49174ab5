//! `/login`: exchanges the code of a login link for the cookie of a session.
//!
//! The link opens a page that sends the code back with `POST`, so the preview of a link in a chat does
//! not use the code up. A program on this machine, which shows no page, gets the cookie at once.

use axum::Form;
use axum::extract::{Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;

use super::html::{accepts_html, page_response, unauthorized_page};
use crate::auth::{ConnectionInfo, SignInError, client_address};
use crate::context::ServerContext;
use crate::problem::Problem;

/// The code of a login link.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoginQuery {
    code: Option<String>,
}

/// Shows the page that sends the code back.
pub(super) async fn page(
    State(context): State<ServerContext>,
    Query(query): Query<LoginQuery>,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let Some(code) = query.code else {
        return missing_code();
    };
    if is_local_program(&parts, &context) {
        return exchange(&code, &parts, &context);
    }
    let is_code = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if code.is_empty() || !code.bytes().all(is_code) {
        return invalid_code(SignInError::Invalid, &parts);
    }
    let page = include_str!("login.html").replace("{code}", &code);
    page_response(StatusCode::OK, "Sign in", &page)
}

/// Exchanges the code for a session.
pub(super) async fn sign_in(
    State(context): State<ServerContext>,
    request: Request,
) -> Result<Response, Response> {
    let (parts, body) = request.into_parts();
    let form = Request::from_parts(parts.clone(), body);
    let form = <Form<LoginQuery> as axum::extract::FromRequest<_>>::from_request(form, &context);
    let Form(form) = form
        .await
        .map_err(axum::response::IntoResponse::into_response)?;
    match form.code {
        Some(code) => Ok(exchange(&code, &parts, &context)),
        None => Err(missing_code()),
    }
}

/// Returns whether a request is neither from a browser nor from the preview of a link: it comes from
/// this machine, without the headers of a browser.
fn is_local_program(parts: &Parts, context: &ServerContext) -> bool {
    let ends = parts.extensions.get::<ConnectionInfo>();
    let is_local = ends.is_some_and(|ends| ends.peer.ip().to_canonical().is_loopback());
    is_local
        && !context.web.is_behind_proxy
        && !accepts_html(&parts.headers)
        && !parts.headers.contains_key("sec-fetch-mode")
}

fn exchange(code: &str, parts: &Parts, context: &ServerContext) -> Response {
    let client = client_address(parts, context.web.is_behind_proxy);
    let opened = match context.access.redeem_code(code, client) {
        Ok(opened) => opened,
        Err(error) => return invalid_code(error, parts),
    };
    let now = context.app.clock().now();
    let cookie = context.web.cookie.set(&opened.cookie, opened.expires, now);
    let start = format!("{}/", context.web.base_path);
    let start = HeaderValue::try_from(start).expect("a base path consists of visible characters");
    let headers = [(header::LOCATION, start), (header::SET_COOKIE, cookie)];
    (StatusCode::SEE_OTHER, headers).into_response()
}

fn missing_code() -> Response {
    Problem::new(
        StatusCode::BAD_REQUEST,
        "invalid-request",
        "the link has no code",
    )
    .into_response()
}

fn invalid_code(error: SignInError, parts: &Parts) -> Response {
    if error == SignInError::Invalid && accepts_html(&parts.headers) {
        return unauthorized_page("This link is not valid", include_str!("used_link.html"));
    }
    Problem::from(error).into_response()
}
