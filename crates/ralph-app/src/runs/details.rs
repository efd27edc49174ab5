//! Everything that is known about a run: the JSON of `show`. Its keys never change.

use std::time::Duration;

use ralph_core::money::Usd;
use ralph_core::ports::AgentMeasurements;
use ralph_core::state::RunState;
use ralph_core::task::RunMode;
use ralph_core::verdict::{TestCount, VerifyFinding};
use ralph_engine::contract;
use ralph_engine::store::RunDir;
use serde::Serialize;
use utoipa::ToSchema;

use super::steering_details::SteeringDetails;
use super::summary::RunSummary;
use crate::providers::models::agent_model_name;
use crate::server::ServerQueue;

/// A run in full.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RunDetails {
    #[serde(flatten)]
    summary: RunSummary,
    title: String,
    repo: String,
    task_file: String,
    base_branch: String,
    /// The model in use.
    model: String,
    /// The profile in use, if the model was chosen by one.
    profile: Option<String>,
    /// The agent in force.
    agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_fallback: Option<FallbackAgentDetails>,
    mode: RunMode,
    /// `None` if the task file of the run cannot be read.
    boxes: Option<Vec<CheckboxEntry>>,
    budgets: RunBudgets,
    verified: Option<VerifiedCommit>,
    /// The number of budget warnings.
    warnings: u64,
    /// The number of notices to the user.
    notices: u64,
    #[serde(flatten)]
    steering: SteeringDetails,
    /// The telemetry of all sessions of agents, if they sent any.
    #[serde(skip_serializing_if = "AgentMeasurements::is_empty")]
    #[schema(value_type = Object)]
    telemetry: AgentMeasurements,
    /// The tests of the last verification, if they could be counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    tests: Option<TestCount>,
    /// The qualifications of the last clean-room verdict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<VerifyFinding>,
}

/// The fallback agent of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FallbackAgentDetails {
    /// With its model, as in `agent_fallback`.
    pub agent: String,
    /// The first iteration in which it works; `None` if it has not replaced the agent.
    pub since_iteration: Option<u32>,
}

/// A checkbox of the task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CheckboxEntry {
    pub id: String,
    pub text: String,
    pub ticked: bool,
}

/// The budgets of a run.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RunBudgets {
    pub iterations: BudgetEntry<u32>,
    pub wall_time_seconds: BudgetEntry<u64>,
    pub cost_usd: BudgetEntry<f64>,
    pub tokens: BudgetEntry<u64>,
}

/// One budget; without a limit, `limit` is null.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct BudgetEntry<T> {
    #[schema(value_type = Option<f64>)]
    pub limit: Option<T>,
    pub used: T,
}

/// A commit that was verified in a clean room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct VerifiedCommit {
    pub commit: String,
    pub green: bool,
}

impl RunDetails {
    /// Adds the place of the run in the queue of the running server, if it has one.
    #[must_use]
    pub fn in_queue(mut self, queue: &ServerQueue) -> Self {
        self.summary = self.summary.in_queue(queue);
        self
    }

    /// Describes a run.
    pub fn from_state(dir: &RunDir, state: &RunState) -> Self {
        let plan = &state.plan;
        let agent = state.agent_in_force();
        let fallback = plan
            .agent
            .as_ref()
            .and_then(|agent| agent.fallback.as_ref());
        let agent_model = agent.map(|agent| {
            agent
                .model
                .clone()
                .unwrap_or_else(|| agent_model_name(agent))
        });
        let verified = state.verified.as_ref();
        Self {
            summary: RunSummary::from_state(dir, state),
            title: plan.title.clone(),
            repo: plan.repo.clone(),
            task_file: plan.task_file.clone(),
            base_branch: plan.base_branch.clone(),
            model: agent_model.unwrap_or_else(|| state.model_choice().model),
            profile: state.profile.clone(),
            agent: agent.map(|agent| agent.name.clone()),
            agent_fallback: fallback.map(|fallback| FallbackAgentDetails {
                agent: fallback.label(),
                since_iteration: state.fallback_agent_since(),
            }),
            mode: state.mode,
            boxes: checkboxes(dir, state),
            budgets: RunBudgets::from_state(state),
            verified: verified.map(|(commit, green)| VerifiedCommit {
                commit: commit.to_string(),
                green: *green,
            }),
            warnings: state.announced.budget_warnings,
            notices: state.announced.notices,
            steering: SteeringDetails::from_state(state),
            telemetry: state.measured.clone(),
            tests: state.verified_tests,
            findings: state.findings.clone(),
        }
    }
}

impl RunBudgets {
    fn from_state(state: &RunState) -> Self {
        let (limits, spent) = (&state.limits, state.spent());
        Self {
            iterations: BudgetEntry {
                limit: limits.max_iterations,
                used: spent.iterations,
            },
            wall_time_seconds: BudgetEntry {
                limit: limits.max_wall_time.as_ref().map(Duration::as_secs),
                used: spent.wall_time.as_secs(),
            },
            cost_usd: BudgetEntry {
                limit: limits.max_cost.map(Usd::dollars),
                used: spent.cost.dollars(),
            },
            tokens: BudgetEntry {
                limit: limits.max_tokens,
                used: spent.tokens,
            },
        }
    }
}

/// Returns the boxes of the contract in force.
fn checkboxes(dir: &RunDir, state: &RunState) -> Option<Vec<CheckboxEntry>> {
    let task = match contract::load_contract(dir, &state.contract) {
        Ok(task) => task,
        Err(error) => {
            tracing::warn!(%error, "the boxes of a run are unknown");
            return None;
        }
    };
    let entry = |checkbox: &ralph_core::task::Checkbox| CheckboxEntry {
        id: checkbox.id.clone(),
        text: checkbox.text.clone(),
        ticked: state.ticked.contains(&checkbox.id),
    };
    Some(task.checkboxes.iter().map(entry).collect())
}
