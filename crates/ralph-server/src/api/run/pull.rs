//! `/runs/{id}/pull`, `/merge` and `/discard`: the delivered result of a run.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use ralph_app::results::{
    DiscardReport, MergeConsent, MergeReport, PullRequestReport, discard_run, merge_run,
    pull_request,
};
use ralph_core::publish::ci::{CiCounts, CiDecision, CiOutcome};
use ralph_core::publish::overlap::PullOverlap;
use ralph_core::state::HostFindings;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::problem_responses::{CommandProblems, ReadProblems};
use crate::context::ServerContext;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new()
        .routes(routes!(pull))
        .routes(routes!(merge))
        .routes(routes!(discard))
}

/// The pull request of a run.
#[derive(Debug, Serialize, ToSchema)]
struct ShownPull {
    #[serde(flatten)]
    pull: PullRequestReport,
    /// The checks at the source host; null before the first report.
    checks: Option<PullChecks>,
    /// Other pull requests that change files of the run.
    overlaps: Vec<PullOverlap>,
}

/// The checks of a commit at the source host.
#[derive(Debug, Serialize, ToSchema)]
struct PullChecks {
    commit: String,
    counts: CiCounts,
    /// Null while checks are pending.
    outcome: Option<CiOutcome>,
    /// The names of the failed checks.
    failed: Vec<String>,
    /// What the run did about the outcome.
    decision: Option<CiDecision>,
}

impl PullChecks {
    fn from_findings(host: &HostFindings) -> Option<Self> {
        let result = host.ci.as_ref().map(|ci| Self {
            commit: ci.commit.to_string(),
            counts: ci.counts,
            outcome: Some(ci.outcome),
            failed: ci.failed.clone(),
            decision: Some(ci.decision),
        });
        let progress = host.progress.as_ref().map(|(commit, counts)| Self {
            commit: commit.to_string(),
            counts: *counts,
            outcome: None,
            failed: Vec::new(),
            decision: None,
        });
        match (result, progress) {
            (Some(result), Some(progress)) if progress.commit != result.commit => Some(progress),
            (Some(result), _) => Some(result),
            (None, progress) => progress,
        }
    }
}

/// Returns the pull request with its text and its checks.
#[utoipa::path(
    get,
    path = "/runs/{id}/pull",
    tag = "results",
    params(("id" = String, Path, description = "The id of the run.")),
    responses((status = 200, body = ShownPull), ReadProblems)
)]
async fn pull(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
) -> Result<Json<ShownPull>, Problem> {
    let read = context.with_run(id, |mut run| async move {
        if run.state.pull.is_none() {
            let detail = "the run has no pull request";
            return Err(
                Problem::new(StatusCode::NOT_FOUND, "no-pull-request", detail)
                    .with_hint("one is opened when its first commits are delivered"),
            );
        }
        let pull = pull_request(&run.dir, &mut run.state, &run.app).await?;
        let pull = PullRequestReport {
            title: run.redacted(pull.title.as_bytes()),
            body: pull.body.map(|body| run.redacted(body.as_bytes())),
            ..pull
        };
        let overlaps: &BTreeMap<u64, PullOverlap> = &run.state.host.overlaps;
        Ok(ShownPull {
            pull,
            checks: PullChecks::from_findings(&run.state.host),
            overlaps: overlaps.values().cloned().collect(),
        })
    });
    Ok(Json(read.await?))
}

/// How a run is merged.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MergeOptions {
    /// Whether to merge commits that no clean room has verified.
    #[serde(default)]
    unverified: bool,
}

/// Merges the branch of a run into its base branch, in a repository on this machine.
#[utoipa::path(
    post,
    path = "/runs/{id}/merge",
    tag = "results",
    params(("id" = String, Path, description = "The id of the run.")),
    request_body = MergeOptions,
    responses((status = 200, body = MergeReport), CommandProblems)
)]
async fn merge(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
    Json(options): Json<MergeOptions>,
) -> Result<Json<MergeReport>, Problem> {
    let consent = if options.unverified {
        MergeConsent::Unverified
    } else {
        MergeConsent::VerifiedOnly
    };
    let merged = context.with_run(id, move |run| async move {
        Ok(merge_run(run.id().as_str(), consent, &run.app).await?)
    });
    Ok(Json(merged.await?))
}

/// Removes branch and sandboxes of a run and closes its pull request. An unfinished run is stopped first.
#[utoipa::path(
    post,
    path = "/runs/{id}/discard",
    tag = "results",
    params(("id" = String, Path, description = "The id of the run.")),
    responses((status = 200, body = DiscardReport), CommandProblems)
)]
async fn discard(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
) -> Result<Json<DiscardReport>, Problem> {
    let discarded = context.with_run(id, |run| async move {
        Ok(Box::pin(discard_run(run.id().as_str(), &run.app)).await?)
    });
    Ok(Json(discarded.await?))
}
