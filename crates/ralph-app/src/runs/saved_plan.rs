//! The plan in the snapshot of a lost run. Everyone with push access to the repository can write a
//! snapshot, so the user accepts everything in it that a new run of the same contract would not have.

use std::collections::BTreeSet;
use std::path::PathBuf;

use ralph_core::id::RunId;
use ralph_core::plan::RunPlan;
use ralph_core::task::TaskFile;
use ralph_engine::adoption::{self, SavedRunError};
use ralph_engine::contract;
use ralph_engine::durable;
use ralph_engine::git::HostGit;
use ralph_engine::store::StateDir;
use serde_json::{Value, json};

use super::adopt::AdoptedContract;
use super::orphans::SavedRun;
use crate::app::App;
use crate::error::AppError;
use crate::planning::sandbox_choice::{self, SandboxChooser};
use crate::planning::{self, PlanPurpose, RunRequest};
use crate::providers::Providers;

/// The directory in the state directory in which snapshots are inspected.
const INSPECTED: &str = "adopting";
/// The longest value that is shown.
const MAX_SHOWN_CHARS: usize = 200;

/// The plan of a lost run, and the user's changes to it according to its journal.
#[derive(Debug)]
pub struct SavedPlan {
    pub plan: RunPlan,
    /// Hosts that were allowed during the run.
    pub allowed_hosts: BTreeSet<String>,
}

/// A temporary copy of a snapshot; removed on drop.
struct InspectedSnapshot(PathBuf);

impl Drop for InspectedSnapshot {
    fn drop(&mut self) {
        if let Err(error) = durable::remove_tree(&self.0) {
            tracing::warn!(%error, "cannot remove the copy of a snapshot");
        }
    }
}

/// Reads the plan and the contract in force from a snapshot.
pub(super) async fn read(
    run: &RunId,
    saved: &SavedRun,
    (git, providers): (&HostGit, &Providers),
) -> Result<(SavedPlan, TaskFile), SavedRunError> {
    let root = providers.state.root().join(INSPECTED).join(run.as_str());
    durable::remove_tree(&root)?;
    let state = StateDir::open(root.clone())?;
    let _copy = InspectedSnapshot(root);
    let dir = state.run(run);
    dir.reserve()?;
    let repo = git.repo(dir.repo());
    let source = saved.repo.display().to_string();
    let snapshot = (source.as_str(), saved.reference.as_str(), &saved.commit);
    let (state, _) = adoption::restore_files((&dir, &repo), snapshot, run).await?;
    let task = contract::load_contract(&dir, &state.contract)
        .map_err(|error| SavedRunError::Contract(error.to_string()))?;
    let saved = SavedPlan {
        plan: state.plan.clone(),
        allowed_hosts: state.allowed_hosts.clone(),
    };
    Ok((saved, task))
}

impl SavedPlan {
    /// Adds the worker of the plan to a request.
    pub(super) fn request(&self, request: RunRequest) -> RunRequest {
        let plan = &self.plan;
        let agent = plan.agent.as_ref();
        RunRequest {
            engine: Some(plan.engine),
            agent: agent.map(|agent| agent.name.clone()),
            model: match agent {
                Some(agent) => agent.model.clone(),
                None => Some(plan.model.clone()),
            },
            ..request
        }
    }

    /// Returns the parts that a new run of the contract would not have, each in a line.
    pub(super) async fn unapproved(
        &self,
        request: &RunRequest,
        contract: &AdoptedContract,
        app: &App,
    ) -> Result<Vec<String>, AppError> {
        let task = (contract.file.clone(), contract.task.clone());
        let planned = planning::plan_run(request, task, app, PlanPurpose::Preview);
        let fresh = Box::pin(planned).await?.plan;
        let mut found = differences(&self.plan, &fresh);
        let choice = sandbox_choice::choose_provider(request, Some(&contract.task), app)?;
        let is_chosen = choice.chooser == SandboxChooser::User || contract.is_known;
        if self.plan.sandbox == "local" && fresh.sandbox == "local" && !is_chosen {
            found.push("sandbox: local, in which commands run as you".to_owned());
        }
        let hosts: Vec<&str> = self.allowed_hosts.iter().map(String::as_str).collect();
        if !hosts.is_empty() {
            found.push(shortened(&format!("allowed hosts: {}", hosts.join(", "))));
        }
        Ok(found)
    }
}

/// Returns the parts of a plan that decide about the powers of a run and differ from a new one.
fn differences(saved: &RunPlan, fresh: &RunPlan) -> Vec<String> {
    let (saved, fresh) = (powers(saved), powers(fresh));
    let differs = |(saved, fresh): &(&(&str, Value), &(&str, Value))| saved.1 != fresh.1;
    let pairs = saved.iter().zip(&fresh).filter(differs);
    let lines = pairs.map(|((name, value), _)| shortened(&format!("{name}: {}", plain(value))));
    lines.collect()
}

/// Returns the parts of a plan that decide about the powers of its run.
fn powers(plan: &RunPlan) -> [(&'static str, Value); 9] {
    let container = plan.container.as_ref();
    let network = plan.network.as_ref();
    let setup = plan.setup.as_ref();
    let agent = plan.agent.as_ref();
    let profiles = plan.settings.as_ref().map(|settings| &settings.profiles);
    [
        ("sandbox", json!(plan.sandbox)),
        (
            "protection",
            json!(plan.local.map(|local| local.confinement)),
        ),
        (
            "container",
            json!(container.map(|container| json!([container.engine, container.read_only]))),
        ),
        ("network", json!(network.map(|network| &network.policy))),
        (
            "inspected hosts",
            json!(network.map(|network| &network.inspect)),
        ),
        (
            "set-up",
            json!(setup.map(|setup| json!([setup.command, setup.registries]))),
        ),
        (
            "provider tools",
            json!(agent.map(|agent| &agent.provider_tools)),
        ),
        (
            "agent",
            json!(agent.map(|agent| json!([agent.name, agent.definition]))),
        ),
        ("profiles", json!(profiles)),
    ]
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
