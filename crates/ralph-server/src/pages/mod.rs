//! The pages of the server: the sign-in of a login link, and the dashboard.

mod dashboard;
mod html;
mod login;
mod start;

pub use dashboard::has_dashboard;

use axum::Router;
use axum::routing::get;

use crate::context::ServerContext;

pub(crate) use html::{ErrorPage, opens_page, sign_in_page};

/// Returns the routes of the pages.
pub(crate) fn routes() -> Router<ServerContext> {
    Router::new()
        .route("/", get(dashboard::page))
        .route("/{*path}", get(dashboard::page))
        .route("/login", get(login::page).post(login::sign_in))
}
