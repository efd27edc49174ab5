//! `/runs/{id}/egress`: the traffic of a run through its gate, and hosts that the user allows.

use axum::Json;
use axum::extract::{Path, State};
use ralph_app::AppError;
use ralph_app::gate::{EgressReport, egress_report};
use ralph_app::planning::app_for_run;
use ralph_app::providers::gate_setup::EGRESS_LOG;
use ralph_app::steering::{AllowScope, allow_for_project, allow_for_run, parse_host};
use ralph_core::run::Command;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::send::require_accepted;
use crate::api::problem_responses::{CommandProblems, ReadProblems};
use crate::context::ServerContext;
use crate::problem::Problem;

/// The number of decisions in a response.
const MAX_DECISIONS: usize = 500;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new().routes(routes!(egress, allow))
}

/// Returns the blocked and allowed hosts, and the last 500 decisions of the gate.
#[utoipa::path(
    get,
    path = "/runs/{id}/egress",
    tag = "workspace",
    params(("id" = String, Path, description = "The id of the run.")),
    responses((status = 200, body = EgressReport), ReadProblems)
)]
async fn egress(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
) -> Result<Json<EgressReport>, Problem> {
    let read = context.with_run(id, |run| async move {
        let log = run.dir.root().join(EGRESS_LOG);
        Ok(egress_report(&run.dir, &run.state, &log, MAX_DECISIONS)?)
    });
    Ok(Json(read.await?))
}

/// A host that commands may reach.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewAllowedHost {
    /// A name, `*.name` for all its subdomains, or `name:port`.
    host: String,
    #[serde(default)]
    scope: AllowedHostScope,
}

/// Which runs may reach a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum AllowedHostScope {
    /// This run.
    #[default]
    Run,
    /// This run, unless it has ended, and later runs of the project.
    Project,
}

/// The effect of an allowed host.
#[derive(Debug, Serialize, ToSchema)]
struct AllowedHostEffect {
    /// The effect on the run; null if it has ended.
    effect: Option<String>,
    /// Whether the project's `ralph.toml` lists the host now; null if it was not wanted.
    listed_in_project: Option<bool>,
}

/// Allows commands to reach a host, including commands that are running.
#[utoipa::path(
    post,
    path = "/runs/{id}/egress",
    tag = "workspace",
    params(("id" = String, Path, description = "The id of the run.")),
    request_body = NewAllowedHost,
    responses((status = 200, body = AllowedHostEffect), CommandProblems)
)]
async fn allow(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
    Json(new): Json<NewAllowedHost>,
) -> Result<Json<AllowedHostEffect>, Problem> {
    let allowed = context.with_run(id, move |run| async move {
        let host = parse_host(&new.host)?;
        let scope = match new.scope {
            AllowedHostScope::Run => AllowScope::Run,
            AllowedHostScope::Project => AllowScope::Project,
        };
        if scope == AllowScope::Run || !run.state.status.is_final() {
            let host = host.to_string();
            require_accepted(&run, &Command::AllowHost { host })?;
        }
        let project = app_for_run(&run.state.plan, &run.app)?;
        let allowed = allow_for_run(&run.dir, &host, scope, &run.app);
        let effect = Box::pin(allowed).await?;
        if scope == AllowScope::Run {
            return Ok(AllowedHostEffect {
                effect,
                listed_in_project: None,
            });
        }
        match allow_for_project(&host, &project) {
            Ok(_) => Ok(AllowedHostEffect {
                effect,
                listed_in_project: Some(true),
            }),
            Err(error) => Err(not_listed(error, effect)),
        }
    });
    Ok(Json(allowed.await?))
}

/// Returns the problem of a host that is allowed for the run and not for later ones.
fn not_listed(error: AppError, effect: Option<String>) -> Problem {
    let mut problem = Problem::from(error);
    if let Some(effect) = effect {
        problem.detail = format!("{effect}; later runs: {}", problem.detail);
    }
    problem
}
