//! `/profiles` and `/models`: the model profiles of a directory, their prices and keys, and a test.

use std::time::Duration;

use axum::Json;
use axum::extract::{Query, State};
use ralph_app::config::PriceSource;
use ralph_app::models::{self, ModelTestReport, ProfileEntry};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::directory::{DirectoryQuery, app_in};
use crate::app_thread::call_app_within;
use crate::context::ServerContext;
use crate::problem::Problem;

/// The longest test of a model.
const TEST_TIMEOUT: Duration = Duration::from_mins(3);

/// The longest list: a keyring may wait for the user.
const LIST_TIMEOUT: Duration = Duration::from_mins(1);

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new()
        .routes(routes!(list_profiles))
        .routes(routes!(list_models))
        .routes(routes!(test_model))
}

/// The profiles of a directory.
#[derive(Debug, Serialize, ToSchema)]
struct ProfileNames {
    profiles: Vec<ProfileName>,
}

/// A profile that a run can use.
#[derive(Debug, Serialize, ToSchema)]
struct ProfileName {
    profile: String,
    model: String,
    is_default: bool,
    usable: bool,
}

/// The models of a directory's profiles.
#[derive(Debug, Serialize, ToSchema)]
struct ModelList {
    profiles: Vec<ProfileEntry>,
    /// The price maps in force, in order of precedence: `kind` and details of each.
    #[schema(value_type = Vec<Object>)]
    price_sources: Vec<PriceSource>,
}

/// A model to test.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ModelTestRequest {
    /// A profile, or a model such as `zai/glm-4.7`.
    model: String,
    /// The directory whose profiles apply.
    directory: Option<String>,
}

/// Lists the model profiles that runs of a directory can use.
#[utoipa::path(
    get,
    path = "/profiles",
    tag = "models",
    params(DirectoryQuery),
    responses(
        (status = 200, body = ProfileNames),
        (status = 422, body = Problem)
    )
)]
async fn list_profiles(
    State(context): State<ServerContext>,
    Query(query): Query<DirectoryQuery>,
) -> Result<Json<ProfileNames>, Problem> {
    let list = profiles(&context, query).await?;
    let profiles = list.profiles.into_iter().map(|entry| ProfileName {
        profile: entry.profile,
        model: entry.model,
        is_default: entry.is_default,
        usable: entry.usable,
    });
    Ok(Json(ProfileNames {
        profiles: profiles.collect(),
    }))
}

/// Lists the models of the profiles with their prices, and whether a key exists. Keys are never shown.
#[utoipa::path(
    get,
    path = "/models",
    tag = "models",
    params(DirectoryQuery),
    responses(
        (status = 200, body = ModelList),
        (status = 422, body = Problem)
    )
)]
async fn list_models(
    State(context): State<ServerContext>,
    Query(query): Query<DirectoryQuery>,
) -> Result<Json<ModelList>, Problem> {
    let list = profiles(&context, query).await?;
    Ok(Json(ModelList {
        profiles: list.profiles,
        price_sources: list.sources,
    }))
}

async fn profiles(
    context: &ServerContext,
    query: DirectoryQuery,
) -> Result<models::ProfileList, Problem> {
    let app = app_in(context, query.directory.as_deref())?;
    let list = call_app_within(LIST_TIMEOUT, move || async move {
        models::list_profiles(&app).await
    });
    Ok(list.await?)
}

/// Sends one request to a model, which costs as much as a short call.
#[utoipa::path(
    post,
    path = "/models/test",
    tag = "models",
    request_body = ModelTestRequest,
    responses(
        (status = 200, body = ModelTestReport),
        (status = 422, body = Problem),
        (status = 502, body = Problem)
    )
)]
async fn test_model(
    State(context): State<ServerContext>,
    Json(request): Json<ModelTestRequest>,
) -> Result<Json<ModelTestReport>, Problem> {
    let app = app_in(&context, request.directory.as_deref())?;
    let redactor = app.redactor();
    let tested = call_app_within(TEST_TIMEOUT, move || async move {
        models::test_model(&request.model, &app).await
    });
    let mut report = tested
        .await
        .map_err(|error| Problem::of_service(error.redacted(&redactor)))?;
    report.reply = redactor.redact(&report.reply).into_owned();
    Ok(Json(report))
}
