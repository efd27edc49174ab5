//! `/orphans`: runs whose directory is gone, found by their sandboxes and snapshots. The user adopts or removes them.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use ralph_app::AppError;
use ralph_app::runs::{
    AdoptionOptions, ApprovalMode, OrphanedRun, PendingAdoption, RunSummary, inspect_orphan,
    remove_orphan, require_approval,
};
use ralph_core::id::Digest;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::directory::app_in;
use crate::app_thread::call_app;
use crate::context::ServerContext;
use crate::operations::{Operation, OperationKind};
use crate::problem::Problem;
use crate::supervisor::{GivenAnswers, RecordedQuestions};

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new()
        .routes(routes!(inspect))
        .routes(routes!(adopt))
        .routes(routes!(remove))
}

/// A run whose directory is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct OrphanEntry {
    run: String,
    task_id: Option<String>,
    /// The provider of its sandbox, if that exists.
    provider: Option<String>,
    sandbox: Option<String>,
    /// The ref of its newest snapshot in the server's repository.
    snapshot: Option<String>,
    /// The remaining copies in words.
    description: String,
}

impl OrphanEntry {
    pub(super) fn new(orphan: &OrphanedRun) -> Self {
        let sandbox = orphan.sandbox.as_ref();
        Self {
            run: orphan.run.to_string(),
            task_id: orphan.task_id().map(str::to_owned),
            provider: sandbox.map(|sandbox| sandbox.provider.to_owned()),
            sandbox: sandbox.map(|sandbox| sandbox.id.to_string()),
            snapshot: orphan.saved.as_ref().map(|saved| saved.reference.clone()),
            description: orphan.describe(),
        }
    }
}

/// How to rebuild a run.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AdoptionChoice {
    /// The repository with the snapshots: an absolute path.
    directory: Option<String>,
    /// Accepts the sandbox of a snapshot.
    sandbox: Option<String>,
    /// For a run that is rebuilt from its sandbox.
    agent: Option<String>,
    profile: Option<String>,
    model: Option<String>,
}

impl AdoptionChoice {
    fn options(&self) -> AdoptionOptions {
        AdoptionOptions {
            sandbox: self.sandbox.clone(),
            agent: self.agent.clone(),
            profile: self.profile.clone(),
            model: self.model.clone(),
        }
    }
}

/// A confirmed adoption.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AdoptionRequest {
    /// The `confirmation` of the inspection.
    confirmation: String,
    #[serde(default)]
    choice: AdoptionChoice,
}

/// A lost run, as the user sees it before the confirmation.
#[derive(Debug, Serialize, ToSchema)]
struct AdoptionPreview {
    orphan: OrphanEntry,
    title: String,
    /// The contract, which the agent or the author of the snapshot could have changed.
    contract: String,
    /// Whether the task file in the directory has the same text.
    is_known: bool,
    test_command: Option<String>,
    verify_commands: Vec<String>,
    /// The powers that a new run here would not have: only the copy decides about them.
    unapproved: Vec<String>,
    /// Names exactly this contract and these powers.
    confirmation: String,
}

/// A sandbox that was removed.
#[derive(Debug, Serialize, ToSchema)]
struct RemovedOrphan {
    sandbox: String,
}

/// Shows what a lost run would be rebuilt from. Without a usable snapshot, this reads its sandbox, whose processes
/// end.
#[utoipa::path(
    post,
    path = "/orphans/{run}/inspect",
    tag = "machine",
    params(("run" = String, Path)),
    request_body = AdoptionChoice,
    responses(
        (status = 200, body = AdoptionPreview),
        (status = 404, body = Problem),
        (status = 422, body = Problem)
    )
)]
async fn inspect(
    State(context): State<ServerContext>,
    Path(run): Path<String>,
    Json(choice): Json<AdoptionChoice>,
) -> Result<Json<AdoptionPreview>, Problem> {
    let app = app_in(&context, choice.directory.as_deref())?;
    let preview = call_app(move || async move {
        let pending = Box::pin(inspect_orphan(&run, &app)).await?;
        let options = choice.options();
        let unapproved = Box::pin(pending.unapproved(&options, &app)).await?;
        preview(&pending, unapproved)
    });
    Ok(Json(preview.await.map_err(absent_as_not_found)?))
}

fn preview(
    pending: &PendingAdoption,
    unapproved: Vec<String>,
) -> Result<AdoptionPreview, AppError> {
    let contract = &pending.contract;
    let text = contract_text(pending)?;
    Ok(AdoptionPreview {
        confirmation: confirmation(&text, &unapproved),
        orphan: OrphanEntry::new(&pending.orphan),
        title: contract.task.title.clone().unwrap_or_default(),
        contract: text,
        is_known: contract.is_known,
        test_command: contract.task.contract.test_command.clone(),
        verify_commands: contract
            .task
            .all_verify_commands()
            .iter()
            .map(ToString::to_string)
            .collect(),
        unapproved,
    })
}

fn contract_text(pending: &PendingAdoption) -> Result<String, AppError> {
    std::fs::read_to_string(&pending.contract.file).map_err(|error| {
        AppError::runtime(
            "cannot read the contract of the lost run",
            error.to_string(),
            "try again",
        )
    })
}

/// Returns a digest of everything that the user confirms.
fn confirmation(contract: &str, unapproved: &[String]) -> String {
    let confirmed = format!("{contract}\0{}", unapproved.join("\0"));
    Digest::compute(confirmed.as_bytes()).to_string()
}

/// Rebuilds a lost run from its copy, after the user has confirmed an inspection.
#[utoipa::path(
    post,
    path = "/orphans/{run}/adopt",
    tag = "machine",
    params(("run" = String, Path)),
    request_body = AdoptionRequest,
    responses(
        (status = 202, body = Operation),
        (status = 422, body = Problem),
        (status = 429, body = Problem)
    )
)]
async fn adopt(
    State(context): State<ServerContext>,
    Path(run): Path<String>,
    Json(request): Json<AdoptionRequest>,
) -> Result<(StatusCode, Json<Operation>), Problem> {
    let app = app_in(&context, request.choice.directory.as_deref())?;
    let options = request.choice.options();
    let started = context
        .operations
        .start(OperationKind::Adoption, move |handle| async move {
            let pending = Box::pin(inspect_orphan(&run, &app)).await?;
            let unapproved = Box::pin(pending.unapproved(&options, &app)).await?;
            let text = contract_text(&pending)?;
            if confirmation(&text, &unapproved) != request.confirmation {
                return Err(AppError::usage(
                    format!("run `{run}` is not adopted"),
                    "its copy is not the one that you confirmed",
                    "inspect it again",
                ));
            }
            let asked = pending.request(&options, &app);
            let task = (pending.contract.file.as_path(), &pending.contract.task);
            let answers = RecordedQuestions::new(GivenAnswers::default());
            let questions = (&app, &answers as _);
            require_approval(&asked, task, ApprovalMode::Require, questions).await?;
            let handle = Arc::new(handle);
            let progress = handle.clone();
            let mut log = move |step| progress.log_image(step);
            let dir = Box::pin(pending.adopt(&options, &app, &mut log)).await?;
            let state = dir.state()?;
            handle.set_result(&RunSummary::from_state(&dir, &state))
        });
    Ok((StatusCode::ACCEPTED, Json(started?)))
}

/// Removes the sandbox of a lost run, which may contain the last copy of its work.
#[utoipa::path(
    delete,
    path = "/orphans/{run}",
    tag = "machine",
    params(("run" = String, Path, description = "The exact id of the run.")),
    responses(
        (status = 200, body = RemovedOrphan),
        (status = 404, body = Problem)
    )
)]
async fn remove(
    State(context): State<ServerContext>,
    Path(run): Path<String>,
) -> Result<Json<RemovedOrphan>, Problem> {
    let removed = call_app(move || async move { remove_orphan(&run, &context.app).await });
    let sandbox = removed.await.map_err(absent_as_not_found)?;
    Ok(Json(RemovedOrphan { sandbox }))
}

/// Reports a run that is not orphaned as not found.
fn absent_as_not_found(error: AppError) -> Problem {
    if error.what.starts_with("there is no orphaned run") {
        let mut problem = Problem::from(error);
        problem.status = StatusCode::NOT_FOUND.as_u16();
        "Not Found".clone_into(&mut problem.title);
        "urn:ralph:problem:not-found".clone_into(&mut problem.kind);
        return problem;
    }
    error.into()
}
