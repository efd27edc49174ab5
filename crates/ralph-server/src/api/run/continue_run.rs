//! `/runs/{id}/answer` and `/continue`: commands after which a waiting run continues.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use ralph_app::runs::require_useful_limits;
use ralph_core::budget::BudgetLimits;
use ralph_core::money::Usd;
use ralph_core::run::Command;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::send::{CommandEffect, idempotency_key, require_accepted, send};
use crate::api::problem_responses::CommandProblems;
use crate::context::ServerContext;
use crate::problem::Problem;
use crate::supervisor::Continuation;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new()
        .routes(routes!(answer))
        .routes(routes!(continue_with))
}

/// The answer to the question of a run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewAnswer {
    /// At most 6 KiB.
    text: String,
}

/// Answers the question of a paused run, which then continues.
#[utoipa::path(
    post,
    path = "/runs/{id}/answer",
    tag = "steering",
    params(
        ("id" = String, Path, description = "The id of the run."),
        ("Idempotency-Key" = Option<String>, Header, description = "Repeats of the request send nothing."),
    ),
    request_body = NewAnswer,
    responses(
        (status = 200, body = CommandEffect),
        (status = 202, body = CommandEffect),
        CommandProblems
    )
)]
async fn answer(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Json(new): Json<NewAnswer>,
) -> Result<CommandEffect, Problem> {
    let key = idempotency_key(&headers)?;
    let command = Command::Answer { text: new.text };
    let (effect, waiting) = context
        .with_run(id, move |run| async move {
            let effect = send(&run, command, key.as_deref()).await?;
            let waiting = (!run.dir.is_held()).then(|| run.id().clone());
            Ok((effect, waiting))
        })
        .await?;
    let Some(run) = waiting else {
        return Ok(effect);
    };
    context.supervisor.resume(&run).await?;
    Ok(CommandEffect {
        effect: format!("{}; the run continues with it", effect.effect),
        ..effect
    })
}

/// Budgets that replace those in force; the others stay.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::struct_field_names,
    reason = "the fields of requests are named like the keys of tasks"
)]
struct NewBudgets {
    #[schema(minimum = 1)]
    max_iterations: Option<u32>,
    /// Active time, in minutes.
    #[schema(minimum = 1)]
    max_wall_time_minutes: Option<u64>,
    /// The cost of all model calls, in US dollars.
    max_cost_usd: Option<f64>,
    /// Input and output tokens of all model calls.
    #[schema(minimum = 1)]
    max_tokens: Option<u64>,
}

impl NewBudgets {
    fn limits(&self) -> Result<BudgetLimits, Problem> {
        let is_zero = self.max_iterations == Some(0)
            || self.max_wall_time_minutes == Some(0)
            || self.max_tokens == Some(0);
        let cost = self.max_cost_usd.map(|dollars| {
            let amount = Usd::from_dollars(dollars).filter(|amount| *amount > Usd::ZERO);
            amount.ok_or(dollars)
        });
        let cost = cost.transpose();
        let (false, Ok(max_cost)) = (is_zero, cost) else {
            let detail = "a budget must be above 0, and a cost at most 1e9";
            let status = axum::http::StatusCode::UNPROCESSABLE_ENTITY;
            return Err(Problem::new(status, "invalid-request", detail));
        };
        let minutes = |minutes: u64| Duration::from_secs(minutes.saturating_mul(60));
        Ok(BudgetLimits {
            max_iterations: self.max_iterations,
            max_wall_time: self.max_wall_time_minutes.map(minutes),
            max_cost,
            max_tokens: self.max_tokens,
        })
    }
}

/// Sets budgets, then continues the run: one that waits, or one that failed because a budget was used up.
#[utoipa::path(
    post,
    path = "/runs/{id}/continue",
    tag = "steering",
    params(("id" = String, Path, description = "The id of the run.")),
    request_body = NewBudgets,
    responses(
        (status = 200, body = CommandEffect),
        (status = 202, body = CommandEffect),
        CommandProblems
    )
)]
async fn continue_with(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
    Json(new): Json<NewBudgets>,
) -> Result<CommandEffect, Problem> {
    let limits = new.limits()?;
    let (effect, run) = context
        .with_run(id, move |run| async move {
            let command = Command::Limits(limits.clone());
            let effect = if limits.is_empty() {
                require_accepted(&run, &Command::Resume)?;
                CommandEffect {
                    command: command.verb(),
                    done: true,
                    effect: "the run continues".to_owned(),
                    output: String::new(),
                }
            } else {
                require_useful_limits(&run.state, &limits)?;
                send(&run, command, None).await?
            };
            let is_working = run.dir.is_held() && run.state.status.is_active();
            Ok((effect, (!is_working).then(|| run.id().clone())))
        })
        .await?;
    let Some(run) = run else {
        return Ok(effect);
    };
    let effect = match context.supervisor.resume(&run).await? {
        Continuation::Started(_) => CommandEffect {
            effect: format!("{}; the run continues", effect.effect),
            ..effect
        },
        Continuation::Sent(report) => CommandEffect {
            effect: format!("{}; {}", effect.effect, report.effect),
            ..effect
        },
    };
    Ok(effect)
}
