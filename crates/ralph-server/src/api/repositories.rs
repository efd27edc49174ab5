//! `/repositories` and `/templates`: everything that a page for new runs needs.

use std::time::Duration;

use axum::Json;
use axum::extract::{Query, State};
use ralph_app::inventory::{self, ProjectReport, RecentRepository};
use ralph_app::new_task::{ProjectInspection, parse_sentence};
use ralph_app::planning::configured_provider;
use ralph_app::providers::SANDBOX_PROVIDERS;
use ralph_core::templates;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::directory::{DirectoryQuery, app_in};
use crate::app_thread::{call_app, call_app_within};
use crate::context::ServerContext;
use crate::problem::Problem;

/// The longest inspection: git reads the repository, and a Docker Engine may not answer.
const TIMEOUT: Duration = Duration::from_mins(1);

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(inspect))
        .routes(routes!(list_templates))
        .routes(routes!(write_task))
        .routes(routes!(defaults))
}

/// The repositories of earlier runs.
#[derive(Debug, Serialize, ToSchema)]
struct RepositoryList {
    /// Most recent first.
    repositories: Vec<RecentRepository>,
}

/// The starter files that ship with ralph.
#[derive(Debug, Serialize, ToSchema)]
struct TemplateList {
    /// A task file with every common key.
    task: String,
    /// A `config/models.yaml`.
    models: String,
}

/// A task to write.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewTaskRequest {
    /// The task in one sentence; without it, the text has a place for it.
    sentence: Option<String>,
    /// An absolute path in the repository.
    directory: Option<String>,
}

/// The text of a new task file. Nothing is stored.
#[derive(Debug, Serialize, ToSchema)]
struct NewTaskText {
    text: String,
}

/// The choices of a new run.
#[derive(Debug, Serialize, ToSchema)]
struct RunChoices {
    sandboxes: Vec<String>,
    engines: Vec<String>,
    modes: Vec<String>,
    agents: Vec<String>,
    profiles: Vec<String>,
    /// The sandbox of the settings or the environment; null if ralph chooses.
    default_sandbox: Option<String>,
    default_profile: Option<String>,
    default_agent: String,
}

/// Lists the repositories of the newest runs.
#[utoipa::path(
    get,
    path = "/repositories",
    tag = "tasks",
    responses((status = 200, body = RepositoryList))
)]
async fn list(State(context): State<ServerContext>) -> Result<Json<RepositoryList>, Problem> {
    let found =
        call_app(move || async move { inventory::recent_repositories(&context.app) }).await?;
    Ok(Json(RepositoryList {
        repositories: found,
    }))
}

/// Inspects a directory and this machine for a new task: languages, test commands, the hosts that its lockfiles
/// need, sandbox and worker.
#[utoipa::path(
    get,
    path = "/repositories/inspection",
    tag = "tasks",
    params(DirectoryQuery),
    responses(
        (status = 200, body = ProjectReport),
        (status = 422, body = Problem)
    )
)]
async fn inspect(
    State(context): State<ServerContext>,
    Query(query): Query<DirectoryQuery>,
) -> Result<Json<ProjectReport>, Problem> {
    let app = app_in(&context, query.directory.as_deref())?;
    let report = call_app_within(TIMEOUT, move || async move {
        inventory::inspect_project(&app).await
    });
    Ok(Json(report.await?))
}

/// Returns the starter files that ship with ralph.
#[utoipa::path(
    get,
    path = "/templates",
    tag = "tasks",
    responses((status = 200, body = TemplateList))
)]
async fn list_templates() -> Json<TemplateList> {
    Json(TemplateList {
        task: templates::TASK.to_owned(),
        models: templates::MODELS.to_owned(),
    })
}

/// Writes the text of a task file for a directory, as `ralph init` does. Nothing is stored.
#[utoipa::path(
    post,
    path = "/templates/task",
    tag = "tasks",
    request_body = NewTaskRequest,
    responses(
        (status = 200, body = NewTaskText),
        (status = 422, body = Problem)
    )
)]
async fn write_task(
    State(context): State<ServerContext>,
    Json(request): Json<NewTaskRequest>,
) -> Result<Json<NewTaskText>, Problem> {
    let app = app_in(&context, request.directory.as_deref())?;
    let text = call_app_within(TIMEOUT, move || async move {
        let sentence = request.sentence.as_deref().map(parse_sentence);
        let sentence = sentence.transpose()?;
        let found = ProjectInspection::of_working_dir(&app).await?;
        found.task_text(sentence, &app)
    });
    Ok(Json(NewTaskText { text: text.await? }))
}

/// Returns the choices of a new run in a directory, with their defaults.
#[utoipa::path(
    get,
    path = "/templates/choices",
    tag = "tasks",
    params(DirectoryQuery),
    responses(
        (status = 200, body = RunChoices),
        (status = 422, body = Problem)
    )
)]
async fn defaults(
    State(context): State<ServerContext>,
    Query(query): Query<DirectoryQuery>,
) -> Result<Json<RunChoices>, Problem> {
    let app = app_in(&context, query.directory.as_deref())?;
    let choices = call_app(move || async move {
        let (profiles, agents) = (app.profiles()?, app.agents()?);
        Ok(RunChoices {
            sandboxes: SANDBOX_PROVIDERS.map(str::to_owned).to_vec(),
            engines: ["actions", "agent"].map(str::to_owned).to_vec(),
            modes: ["autonomous", "guided", "debug"]
                .map(str::to_owned)
                .to_vec(),
            agents: agents.all().map(|preset| preset.name.clone()).collect(),
            profiles: profiles.iter().map(|(name, _)| name.to_owned()).collect(),
            default_sandbox: configured_provider(&app)?,
            default_profile: profiles.default_name().map(str::to_owned),
            default_agent: ralph_app::tokens::AgentName::DEFAULT.to_owned(),
        })
    });
    Ok(Json(choices.await?))
}
