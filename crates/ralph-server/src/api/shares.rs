//! `/shares`: links that show the server to another person for a short time.

use std::time::Duration;

use axum::Json;
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::auth::{AccessScope, Caller, ShareLink};
use crate::context::ServerContext;
use crate::problem::Problem;

/// The longest validity of a share link, in minutes.
const MAX_MINUTES: u8 = 60;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(revoke))
}

/// A new share link.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewShare {
    /// The validity in minutes, of the link and of what it opens.
    #[schema(minimum = 1, maximum = 60)]
    #[serde(default = "longest_validity")]
    minutes: u8,
}

fn longest_validity() -> u8 {
    MAX_MINUTES
}

/// A created share link.
#[derive(Debug, Serialize, ToSchema)]
struct CreatedShare {
    #[serde(flatten)]
    share: ShareLink,
    /// Works once, and permits only requests that change nothing.
    url: String,
}

/// The valid share links.
#[derive(Debug, Serialize, ToSchema)]
struct ShareList {
    /// Oldest first.
    shares: Vec<ShareLink>,
}

/// Lists the valid share links.
#[utoipa::path(get, path = "/shares", tag = "access", responses((status = 200, body = ShareList)))]
async fn list(
    State(context): State<ServerContext>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<ShareList>, Problem> {
    if caller.scope == AccessScope::Read {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "read-only",
            "a share link does not show the other ones",
        ));
    }
    let shares = context.access.shares();
    Ok(Json(ShareList { shares }))
}

/// Creates a share link: it works once, for reading, and for at most an hour.
#[utoipa::path(
    post,
    path = "/shares",
    tag = "access",
    request_body = NewShare,
    responses(
        (status = 201, body = CreatedShare),
        (status = 409, description = "There are too many share links."),
        (status = 415, description = "The body is not JSON."),
        (status = 422, description = "A field is invalid.")
    )
)]
async fn create(
    State(context): State<ServerContext>,
    Json(new): Json<NewShare>,
) -> Result<impl IntoResponse, Problem> {
    if !(1..=MAX_MINUTES).contains(&new.minutes) {
        return Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid-request",
            format!(
                "`minutes` is {}, the allowed range is 1 to {MAX_MINUTES}",
                new.minutes
            ),
        ));
    }
    let lifetime = Duration::from_mins(new.minutes.into());
    let (share, code) = context.access.create_share(lifetime).map_err(|error| {
        Problem::new(StatusCode::CONFLICT, "too-many-shares", error.to_string())
            .with_hint("revoke one, or wait until one expires")
    })?;
    let url = context.web.login_link(code.expose());
    Ok((StatusCode::CREATED, Json(CreatedShare { share, url })))
}

/// Revokes a share link, ends the session that it opened, and closes its streams.
#[utoipa::path(
    delete,
    path = "/shares/{id}",
    tag = "access",
    params(("id" = String, Path, description = "The id of a share link.")),
    responses(
        (status = 204, description = "The link is revoked."),
        (status = 404, description = "There is no such link.")
    )
)]
async fn revoke(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    if context.access.revoke_share(&id) {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(Problem::new(
        StatusCode::NOT_FOUND,
        "no-such-share",
        "there is no such share link, or it expired",
    ))
}
