//! `/images`: the image of container sandboxes, its build and its download.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use ralph_app::image::{
    DockerfileChoice, ImageBuildRequest, ImagePull, ImageStatusEntry, PreparedImageBuild,
    image_status,
};
use ralph_core::image::{AgentImage, ImageName};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::directory::app_in;
use crate::app_thread::call_app_within;
use crate::context::ServerContext;
use crate::operations::{Operation, OperationKind, until_cancelled};
use crate::problem::Problem;

/// The longest query.
const TIMEOUT: Duration = Duration::from_mins(1);

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new()
        .routes(routes!(status))
        .routes(routes!(build))
        .routes(routes!(pull))
}

/// The image to query; by default that of the settings.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct ImageQuery {
    image: Option<String>,
    /// The image of this agent: `claude`, `codex` or `plain`.
    agent: Option<String>,
    directory: Option<String>,
}

/// An image to build.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ImageBuild {
    /// The image of this agent: `claude`, `codex` or `plain`.
    agent: Option<String>,
    /// Also gives the image this name.
    tag: Option<String>,
    /// Whether it is built from the Dockerfile that ships with ralph, even if nix is installed.
    #[serde(default)]
    bundled: bool,
    directory: Option<String>,
}

/// An image to pull; by default that of the settings.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ImagePullRequest {
    image: Option<String>,
    /// Whether it is pulled even if it exists locally.
    #[serde(default)]
    force: bool,
    directory: Option<String>,
}

/// The images of a finished operation.
#[derive(Debug, Serialize)]
struct NamedImages {
    images: Vec<String>,
}

/// Returns whether an image exists. An engine that does not answer is not an error.
#[utoipa::path(
    get,
    path = "/images",
    tag = "machine",
    params(ImageQuery),
    responses(
        (status = 200, body = ImageStatusEntry),
        (status = 422, body = Problem)
    )
)]
async fn status(
    State(context): State<ServerContext>,
    Query(query): Query<ImageQuery>,
) -> Result<Json<ImageStatusEntry>, Problem> {
    let app = app_in(&context, query.directory.as_deref())?;
    let image = parse_image(query.image.as_deref())?;
    let agent = parse_agent(query.agent.as_deref())?;
    let report = call_app_within(TIMEOUT, move || async move {
        let report = image_status(image, agent, &app).await?;
        Ok(report.entry())
    });
    Ok(Json(report.await?))
}

/// Starts to build an image, with its output in the log of the operation.
#[utoipa::path(
    post,
    path = "/images/build",
    tag = "machine",
    request_body = ImageBuild,
    responses(
        (status = 202, body = Operation),
        (status = 422, body = Problem),
        (status = 429, body = Problem)
    )
)]
async fn build(
    State(context): State<ServerContext>,
    Json(asked): Json<ImageBuild>,
) -> Result<(StatusCode, Json<Operation>), Problem> {
    let app = app_in(&context, asked.directory.as_deref())?;
    let request = ImageBuildRequest {
        nix: false,
        dockerfile: asked.bundled.then_some(DockerfileChoice::Bundled),
        agent: parse_agent(asked.agent.as_deref())?,
        tag: parse_image(asked.tag.as_deref())?,
    };
    let started = context
        .operations
        .start(OperationKind::ImageBuild, move |handle| async move {
            let build = PreparedImageBuild::prepare(request, &app).await?;
            if let Some(note) = build.note {
                handle.log(note);
            }
            let handle = Arc::new(handle);
            let progress = handle.clone();
            let mut log = move |step| progress.log_image(step);
            let images = Box::pin(build.run(&app, &mut log));
            let images = until_cancelled(handle.cancelled(), images).await?;
            if let Some(hint) = &images.hint {
                handle.log(hint);
            }
            handle.set_result(&NamedImages {
                images: images.names.iter().map(ToString::to_string).collect(),
            })
        });
    Ok((StatusCode::ACCEPTED, Json(started?)))
}

/// Starts to pull an image, unless it exists locally.
#[utoipa::path(
    post,
    path = "/images/pull",
    tag = "machine",
    request_body = ImagePullRequest,
    responses(
        (status = 202, body = Operation),
        (status = 422, body = Problem),
        (status = 429, body = Problem)
    )
)]
async fn pull(
    State(context): State<ServerContext>,
    Json(asked): Json<ImagePullRequest>,
) -> Result<(StatusCode, Json<Operation>), Problem> {
    let app = app_in(&context, asked.directory.as_deref())?;
    let image = parse_image(asked.image.as_deref())?;
    let started = context
        .operations
        .start(OperationKind::ImagePull, move |handle| async move {
            let pull = ImagePull::prepare(image, asked.force, &app).await?;
            let handle = Arc::new(handle);
            if pull.is_satisfied {
                handle.log("the image exists locally");
            } else {
                let progress = handle.clone();
                let mut log = move |step| progress.log_image(step);
                let pulled = Box::pin(pull.run(&mut log));
                until_cancelled(handle.cancelled(), pulled).await?;
            }
            handle.set_result(&NamedImages {
                images: vec![pull.image.to_string()],
            })
        });
    Ok((StatusCode::ACCEPTED, Json(started?)))
}

fn parse_image(name: Option<&str>) -> Result<Option<ImageName>, Problem> {
    let parsed = name.map(ImageName::parse).transpose();
    parsed.map_err(|error| invalid_image(&error.to_string()))
}

fn parse_agent(name: Option<&str>) -> Result<Option<AgentImage>, Problem> {
    let parsed = name.map(AgentImage::parse).transpose();
    parsed.map_err(|error| invalid_image(&error.to_string()))
}

fn invalid_image(why: &str) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid-image", why)
}
