//! The directory whose configuration a request uses.

use std::path::Path;

use axum::http::StatusCode;
use ralph_app::App;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::context::ServerContext;
use crate::problem::Problem;

/// The directory of a request.
#[derive(Debug, Clone, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct DirectoryQuery {
    /// An absolute path, whose configuration and `.env` apply; the default is the directory that the server was
    /// started in.
    pub(super) directory: Option<String>,
}

/// Returns the application context of a directory.
pub(super) fn app_in(context: &ServerContext, directory: Option<&str>) -> Result<App, Problem> {
    let own = context.app.environment().working_dir();
    let directory = directory.map_or(own, Path::new);
    let rejected = |why: &str| {
        Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid-directory",
            format!("cannot use the directory `{}` — {why}", directory.display()),
        )
        .with_hint("name the absolute path of a directory on the server's machine")
    };
    if !directory.is_absolute() {
        return Err(rejected("it is not an absolute path"));
    }
    if directory.as_os_str().as_encoded_bytes().contains(&0) || !directory.is_dir() {
        return Err(rejected("it is not a directory"));
    }
    Ok(context.app.in_directory(directory))
}
