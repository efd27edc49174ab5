//! `/session`, `/login-links` and `/token`: how callers sign in and out.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_thread::call_app;
use crate::auth::{AccessScope, Caller};
use crate::context::ServerContext;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new()
        .routes(routes!(session, sign_out))
        .routes(routes!(create_login_link))
        .routes(routes!(replace_token))
}

/// The rights of the caller.
#[derive(Debug, Serialize, ToSchema)]
struct CallerSession {
    scope: AccessScope,
    /// The end of the browser's session; null for the token of programs.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
}

/// Returns the rights of the caller.
#[utoipa::path(get, path = "/session", tag = "access", responses((status = 200, body = CallerSession)))]
async fn session(Extension(caller): Extension<Caller>) -> Json<CallerSession> {
    Json(CallerSession {
        scope: caller.scope,
        expires_at: caller.expires,
    })
}

/// Ends the session of this browser.
#[utoipa::path(
    delete,
    path = "/session",
    tag = "access",
    responses(
        (status = 204, description = "The session ended, and its streams are closed."),
        (status = 409, description = "The caller has no session.")
    )
)]
async fn sign_out(
    State(context): State<ServerContext>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if caller.session.is_none() {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "no-session",
            "the token of programs has no session",
        ));
    }
    for cookie in context.web.cookie.values(&headers) {
        context.access.close_session(cookie);
    }
    let cleared = [(header::SET_COOKIE, context.web.cookie.clear())];
    Ok((StatusCode::NO_CONTENT, cleared).into_response())
}

/// A link that signs a browser in.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LoginLink {
    /// Works once.
    pub(super) url: String,
    #[schema(value_type = String, format = DateTime)]
    pub(super) expires_at: Timestamp,
}

/// Creates a link that signs a browser in once.
#[utoipa::path(
    post,
    path = "/login-links",
    tag = "access",
    responses((status = 201, body = LoginLink))
)]
async fn create_login_link(State(context): State<ServerContext>) -> impl IntoResponse {
    let created = context.access.create_login_code();
    let link = LoginLink {
        url: context.web.login_link(created.code.expose()),
        expires_at: created.expires,
    };
    (StatusCode::CREATED, Json(link))
}

/// Replaces the token of programs, and ends all sessions, login links and share links. The new token is
/// in `server.json`.
#[utoipa::path(
    post,
    path = "/token",
    tag = "access",
    responses(
        (status = 204, description = "The token was replaced."),
        (status = 409, description = "The token is fixed by `RALPH_TOKEN`.")
    )
)]
async fn replace_token(State(context): State<ServerContext>) -> Result<StatusCode, Problem> {
    let Ok(token) = context.access.rotate_token() else {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "fixed-token",
            "the token is fixed by `RALPH_TOKEN`",
        )
        .with_hint("change the variable and start the server again"));
    };
    context.app.add_secret("RALPH_TOKEN", &token);
    let published = context.published.clone();
    call_app(move || async move { published.replace_token(token) }).await?;
    Ok(StatusCode::NO_CONTENT)
}
