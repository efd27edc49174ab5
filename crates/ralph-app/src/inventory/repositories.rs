//! The repositories of earlier runs, and what a new task needs to know about one.

use std::path::Path;

use ralph_core::net::EgressPolicy;
use ralph_engine::journal::RunOutline;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::AppError;
use crate::new_task::{
    ProjectInspection, RepositoryStatus, SandboxStatus, WorkerChoice, missing_worker_fix,
};
use crate::planning::{base_commit, network};

/// The number of runs whose repositories are read.
const MAX_RUNS: usize = 500;

/// A repository with runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RecentRepository {
    /// Its path on this machine, or its address on a source host.
    pub repository: String,
    /// Whether it is a directory that exists on this machine.
    pub is_local: bool,
    /// The number of its runs among the newest 500.
    pub runs: u64,
    pub last_run: String,
    pub last_task: Option<String>,
}

/// What was found in a directory and on this machine: the basis of a new task.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ProjectReport {
    pub directory: String,
    /// The top level of the repository; null if a run cannot start from it.
    pub repository: Option<String>,
    pub default_branch: Option<String>,
    /// Why a run cannot start from the repository.
    pub repository_problem: Option<String>,
    pub repository_fix: Option<String>,
    pub languages: Vec<String>,
    /// The commands that run the tests, the most likely one first.
    pub test_commands: Vec<DetectedTest>,
    pub setup_command: Option<String>,
    /// Hosts in lockfiles and settings of package managers that a sandbox cannot reach yet.
    pub hosts: Vec<NeededHost>,
    /// The sandbox provider that a new task uses.
    pub sandbox: String,
    /// Why `docker` cannot be used.
    pub sandbox_problem: Option<String>,
    /// The agent of a new task, if one has a credential.
    pub agent: Option<String>,
    /// The model profile of a new task, if no agent has a credential.
    pub profile: Option<String>,
    pub model: Option<String>,
    /// What to do if there is neither.
    pub worker_fix: Option<String>,
}

/// A command that runs the tests of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DetectedTest {
    pub command: String,
    /// The file that shows it.
    pub origin: String,
}

/// A host that files of a project name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct NeededHost {
    pub host: String,
    pub file: String,
    pub why: String,
}

/// Lists the repositories of the newest runs, most recent first.
pub fn recent_repositories(app: &App) -> Result<Vec<RecentRepository>, AppError> {
    let state = app.state_dir()?;
    let mut found: Vec<RecentRepository> = Vec::new();
    for id in state.runs()?.into_iter().rev().take(MAX_RUNS) {
        let outline = RunOutline::read(&state.run(&id).journal());
        let Some(repository) = outline.repo else {
            continue;
        };
        match found
            .iter_mut()
            .find(|known| known.repository == repository)
        {
            Some(known) => known.runs += 1,
            None => found.push(RecentRepository {
                is_local: Path::new(&repository).is_dir(),
                repository,
                runs: 1,
                last_run: id.to_string(),
                last_task: outline.task_id,
            }),
        }
    }
    Ok(found)
}

/// Inspects the working directory and this machine, as `ralph init` does. Changes nothing.
pub async fn inspect_project(app: &App) -> Result<ProjectReport, AppError> {
    let found = ProjectInspection::of_working_dir(app).await?;
    let mut report = ProjectReport {
        directory: app.environment().working_dir().display().to_string(),
        repository: None,
        default_branch: None,
        repository_problem: None,
        repository_fix: None,
        languages: found
            .project
            .languages
            .iter()
            .map(ToString::to_string)
            .collect(),
        test_commands: found
            .project
            .test_commands
            .iter()
            .map(|test| DetectedTest {
                command: test.command.clone(),
                origin: test.origin.clone(),
            })
            .collect(),
        setup_command: found.project.setup_command.clone(),
        hosts: Vec::new(),
        sandbox: found.sandbox.name().to_owned(),
        sandbox_problem: match &found.sandbox {
            SandboxStatus::Local(error) => Some(error.cause()),
            SandboxStatus::Configured(_) | SandboxStatus::Docker => None,
        },
        agent: None,
        profile: None,
        model: None,
        worker_fix: None,
    };
    match &found.repository {
        RepositoryStatus::Ready {
            path,
            default_branch,
        } => {
            report.repository = Some(path.display().to_string());
            report.default_branch = Some(default_branch.to_string());
            report.hosts = needed_hosts(path, default_branch.as_str(), app).await?;
        }
        RepositoryStatus::Unusable(error) => {
            report.repository_problem = Some(error.cause());
            report.repository_fix = Some(error.fix.clone());
        }
    }
    report.set_worker(found.worker);
    Ok(report)
}

impl ProjectReport {
    fn set_worker(&mut self, worker: WorkerChoice) {
        match worker {
            WorkerChoice::Agent { name, .. } => self.agent = Some(name),
            WorkerChoice::Model { profile, model, .. } => {
                self.profile = Some(profile);
                self.model = Some(model);
            }
            WorkerChoice::Missing { variables } => {
                self.worker_fix = Some(missing_worker_fix(&variables));
            }
        }
    }
}

/// Returns the hosts in the project's files that the policy of a new run does not allow.
async fn needed_hosts(
    repository: &Path,
    branch: &str,
    app: &App,
) -> Result<Vec<NeededHost>, AppError> {
    let git = app.git_read_only();
    let commit = base_commit(repository, branch, &git).await?;
    let settings = app.settings()?.sandbox.network;
    let policy: EgressPolicy = network::network_plan(&settings, &[])?.policy;
    let suggested = network::suggest_hosts(&policy, repository, &commit, &git).await;
    let hosts = suggested.into_iter().map(|suggested| NeededHost {
        host: suggested.host,
        file: suggested.file,
        why: suggested.why,
    });
    Ok(hosts.collect())
}
