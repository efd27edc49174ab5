//! Starts or resumes the run of an issue.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ralph_core::budget::BudgetLimits;
use ralph_core::id::RunId;
use ralph_core::image::ImageEffort;
use ralph_core::money::Usd;
use ralph_core::plan::{EngineKind, IssuePlan};
use ralph_core::ports::HostIssue;
use ralph_core::repo_address::RepoAddress;
use ralph_core::spec::{Spec, SpecTask, spec_task};
use ralph_engine::durable;

use super::front_end::IssueFrontEnd;
use super::records::IssueRecord;
use super::repository::IssueRepository;
use super::write_back::IssueObserver;
use crate::app::App;
use crate::error::AppError;
use crate::new_task::test_command_at;
use crate::planning::{self, IssueRequest, RunRequest, find_remote, model_choice};
use crate::runs::{
    ApprovalMode, ReadyRun, ResumeOutcome, RunStart, UnfinishedRunPolicy, confirm_sandbox,
    plan_start, prepare_resume, prepare_start, require_approval,
};

/// The token limit of a run whose cost cannot be limited.
const DEFAULT_TOKENS: u64 = 2_000_000;

/// The user's overrides for the runs of issues.
#[derive(Debug, Clone)]
pub struct IssueRunOptions {
    pub sandbox: Option<String>,
    pub engine: Option<EngineKind>,
    pub agent: Option<String>,
    pub profile: Option<String>,
    pub model: Option<String>,
    pub limits: BudgetLimits,
    pub rebuild: PendingRebuild,
}

/// Whether the image has to be rebuilt, which happens once: for the first run that starts. Clones share it.
#[derive(Debug, Clone)]
pub struct PendingRebuild(Arc<AtomicBool>);

impl PendingRebuild {
    /// Creates the effort of the first image; the later ones are reused.
    pub fn new(effort: ImageEffort) -> Self {
        Self(Arc::new(AtomicBool::new(effort == ImageEffort::Rebuild)))
    }

    /// Returns the effort for the next image.
    fn take(&self) -> ImageEffort {
        if self.0.swap(false, Ordering::Relaxed) {
            ImageEffort::Rebuild
        } else {
            ImageEffort::Reuse
        }
    }
}

/// Prepares the run of an issue with a new branch, and records it.
pub(super) async fn start_run(
    repository: &Arc<IssueRepository>,
    (issue, spec): (&HostIssue, &Spec),
    options: &IssueRunOptions,
    front_end: &dyn IssueFrontEnd,
) -> Result<ReadyRun, AppError> {
    // A context of its own reads the current base commit and the current branches.
    let directory = repository.app.environment().working_dir();
    let app = &repository.app.in_directory(directory);
    let request = request(repository, (issue, spec), options, app).await?;
    let (file, task) = planning::read_task(&request.file, app)?;
    let questions = (app, front_end.questions());
    let request = confirm_sandbox(request, &task, questions).await?;
    require_approval(&request, (&file, &task), ApprovalMode::Require, questions).await?;
    let planned = Box::pin(plan_start(&request, (file, task), app)).await?;
    let start = RunStart {
        planned,
        effort: options.rebuild.take(),
        unfinished_runs: UnfinishedRunPolicy::Allow,
        on_reserved: None,
    };
    let mut progress = |progress| front_end.show_image_progress(progress);
    let run = Box::pin(prepare_start(start, app, &mut progress)).await?;
    let id = run.journal().state().plan.run.clone();
    let record = IssueRecord::new(issue.number, id, &issue.body);
    repository.records.store(&record)?;
    repository.records.assign_run(issue.number, &record.run)?;
    Ok(observed(run, repository, record))
}

/// Prepares the unfinished run of an issue again. Returns `None` if another process works on it.
pub(super) async fn resume_run(
    repository: &Arc<IssueRepository>,
    record: IssueRecord,
) -> Result<Option<ReadyRun>, AppError> {
    let run: &RunId = &record.run;
    let resumed = Box::pin(prepare_resume(run.as_str(), &repository.app)).await?;
    Ok(match resumed {
        ResumeOutcome::Ready(ready) => Some(observed(*ready, repository, record)),
        ResumeOutcome::Sent(_) => None,
    })
}

fn observed(run: ReadyRun, repository: &Arc<IssueRepository>, record: IssueRecord) -> ReadyRun {
    let repository = repository.clone();
    run.with_observer(Box::new(IssueObserver { repository, record }))
}

/// Writes the task of an issue, and returns the request that runs it.
async fn request(
    repository: &IssueRepository,
    (issue, spec): (&HostIssue, &Spec),
    options: &IssueRunOptions,
    app: &App,
) -> Result<RunRequest, AppError> {
    let command = test_command(repository, spec, app).await?;
    let settings = task_settings(repository, spec, (options, command))?;
    let text = spec_task(spec, &settings).map_err(|finding| {
        AppError::runtime(
            format!("issue #{} cannot be converted to a task", issue.number),
            finding.message,
            finding.fix,
        )
    })?;
    let file = store_task(repository, issue.number, &text)?;
    let steps = spec.document.steps().iter();
    let steps = steps.map(|step| step.number.clone()).collect();
    Ok(RunRequest {
        repo: Some(match &repository.source {
            RepoAddress::Remote(repo) => repo.to_string(),
            RepoAddress::Path(path) => path.clone(),
        }),
        sandbox: options.sandbox.clone(),
        profile: options.profile.clone(),
        model: options.model.clone(),
        limits: options.limits.clone(),
        issue: Some(IssueRequest {
            plan: IssuePlan {
                number: issue.number,
                url: issue.url.clone(),
                steps,
            },
            spec: spec.text_for_run(),
        }),
        ..RunRequest::for_file(file)
    })
}

/// Stores the task of an issue. The file belongs to ralph: a new version replaces it, and the run pins its own
/// copy.
fn store_task(repository: &IssueRepository, number: u64, text: &str) -> Result<PathBuf, AppError> {
    let directory = repository.records.tasks();
    durable::create_dir(&directory)?;
    let path = directory.join(format!("issue-{number}.md"));
    durable::write_shared(&path, text.as_bytes())?;
    Ok(path)
}

fn task_settings(
    repository: &IssueRepository,
    spec: &Spec,
    (options, test_command): (&IssueRunOptions, String),
) -> Result<SpecTask, AppError> {
    let settings = &repository.settings;
    let implied = match (&options.agent, &options.profile) {
        (Some(_), _) => EngineKind::Agent,
        (None, Some(_)) => EngineKind::Actions,
        (None, None) => settings.engine,
    };
    let engine = options.engine.unwrap_or(implied);
    let configured = Some(settings.agent.clone()).filter(|name| !name.is_empty());
    let agent = options
        .agent
        .clone()
        .or(configured)
        .filter(|_| engine == EngineKind::Agent);
    let has_price = match engine {
        EngineKind::Agent => true,
        EngineKind::Actions => {
            let (model, profile) = (options.model.as_deref(), options.profile.as_deref());
            model_choice(model, profile, None, &repository.app)?
                .price
                .is_some()
        }
    };
    let max_tokens = match settings.max_tokens_total {
        0 if has_price => None,
        0 => Some(DEFAULT_TOKENS),
        tokens => Some(tokens),
    };
    Ok(SpecTask {
        engine,
        agent,
        test_command: Some(test_command),
        max_iterations: settings.max_iterations,
        max_wall_time_minutes: settings.max_wall_time_minutes,
        max_cost: Usd::from_dollars(settings.max_cost_usd_estimate).filter(|_| has_price),
        max_tokens,
        comment: format!(
            "written by ralph for issue #{} of {}",
            spec.number,
            repository.name()
        ),
    })
}

/// Returns the command that must succeed: the configured one, or the one of the project at the base commit, or
/// else the last command of the steps.
async fn test_command(
    repository: &IssueRepository,
    spec: &Spec,
    app: &App,
) -> Result<String, AppError> {
    let configured = &repository.settings.test_command;
    if !configured.trim().is_empty() {
        return Ok(configured.clone());
    }
    if let Some(found) = detect_at_base(repository, spec, app).await? {
        return Ok(found);
    }
    let steps = spec.document.steps().iter().rev();
    let last = steps.flat_map(|step| step.commands.iter().rev()).next();
    last.cloned().ok_or_else(|| {
        AppError::usage(
            format!("no test command was found for issue #{}", spec.number),
            "a run succeeds only if a command proves it",
            "add a line such as ``Verify: `make test` `` to a step, or set `test_command` of `[issues]` in ralph.toml",
        )
    })
}

/// Finds the test command of the project at the commit that the work starts from.
async fn detect_at_base(
    repository: &IssueRepository,
    spec: &Spec,
    app: &App,
) -> Result<Option<String>, AppError> {
    let (path, commit) = match &repository.source {
        RepoAddress::Remote(repo) => {
            let wanted = spec.branch.as_str().to_owned();
            let source = find_remote(repo, (spec.base.as_ref(), wanted), app).await?;
            (source.mirror, source.base.to_string())
        }
        RepoAddress::Path(path) => (PathBuf::from(path), "HEAD".to_owned()),
    };
    match test_command_at(&path, &commit, &app.git_read_only()).await {
        Ok(found) => Ok(found),
        Err(error) => {
            tracing::warn!(%error, "no test command is detected");
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_rebuilt_once() {
        let pending = PendingRebuild::new(ImageEffort::Rebuild);
        let shared = pending.clone();
        assert_eq!(pending.take(), ImageEffort::Rebuild);
        assert_eq!(shared.take(), ImageEffort::Reuse);
        let none = PendingRebuild::new(ImageEffort::Reuse);
        assert_eq!(none.take(), ImageEffort::Reuse);
    }
}
