//! Decides whether a task's unfinished run is continued or a new one is started.

use ralph_core::image::ImageEffort;
use ralph_core::plan::RunPlan;
use ralph_core::repo_address::RepoAddress;
use ralph_engine::journal::{JournalError, RunOutline};
use ralph_engine::store::StateDir;

use super::approval::StartQuestions;
use crate::app::App;
use crate::error::AppError;
use crate::planning::RunRequest;
use crate::providers::models::absolute_script;

/// An unfinished run of the same task file.
pub struct UnfinishedRun {
    pub plan: RunPlan,
    /// The status in one word.
    pub status: &'static str,
    /// Whether a process works on the run.
    is_held: bool,
}

/// What to do with an unfinished run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnfinishedRunChoice {
    /// Continues the unfinished run.
    Resume,
    /// Starts a new run.
    New,
}

/// Returns the last readable run of a task file if it is unfinished.
pub fn find_unfinished(
    file: &str,
    state_dir: &StateDir,
) -> Result<Option<UnfinishedRun>, AppError> {
    for id in state_dir.runs()?.iter().rev() {
        let dir = state_dir.run(id);
        // The whole journal is read only if it belongs to this task.
        if RunOutline::read(&dir.journal()).task_file.as_deref() != Some(file) {
            continue;
        }
        let state = match dir.state() {
            Ok(state) => state,
            Err(error @ (JournalError::Newer { .. } | JournalError::Unknown { .. })) => {
                return Err(newer_version_error(error));
            }
            // A run with an unreadable journal cannot be continued.
            Err(_) => continue,
        };
        let status = if state.status.needs_process() {
            "interrupted"
        } else {
            state.status.as_str()
        };
        return Ok((!state.status.is_final()).then(|| UnfinishedRun {
            is_held: dir.is_held(),
            plan: state.plan,
            status,
        }));
    }
    Ok(None)
}

/// Returns the error for a last run of a newer version: it cannot be continued here and may be
/// unfinished.
fn newer_version_error(error: JournalError) -> AppError {
    let error = AppError::from(error);
    AppError {
        fix: "upgrade ralph, or start over with `ralph run --new`".to_owned(),
        ..error
    }
}

impl UnfinishedRun {
    /// Returns the user's choice from the flags, or else asks the user.
    pub fn choose(
        &self,
        flag: Option<UnfinishedRunChoice>,
        questions: &dyn StartQuestions,
    ) -> Result<UnfinishedRunChoice, AppError> {
        if flag == Some(UnfinishedRunChoice::New) {
            return Ok(UnfinishedRunChoice::New);
        }
        if self.is_held {
            return Err(self.refusal());
        }
        if flag == Some(UnfinishedRunChoice::Resume) || questions.continue_run(self) {
            return Ok(UnfinishedRunChoice::Resume);
        }
        Err(self.refusal())
    }

    /// Returns the error of a new run that this unfinished run prevents.
    pub fn refusal(&self) -> AppError {
        let id = &self.plan.run;
        if self.is_held {
            return AppError::runtime(
                format!("run `{id}` of this task is under way"),
                "another process works on it",
                format!(
                    "follow it with `ralph logs -f {id}`, or start another with `ralph run --new`"
                ),
            );
        }
        AppError::runtime(
            format!("run `{id}` of this task is {}", self.status),
            "it has not finished",
            format!("continue it with `ralph resume {id}`, or start over with `ralph run --new`"),
        )
    }

    /// Rejects flags that would change the plan, because a run continues as it was planned.
    pub fn refuse_other_plan(
        &self,
        request: &RunRequest,
        rebuild: ImageEffort,
        app: &App,
    ) -> Result<(), AppError> {
        let directory = app.environment().working_dir();
        let model = request
            .model
            .as_ref()
            .map(|model| absolute_script(model, directory));
        let repo = request
            .repo
            .as_deref()
            .map(|repo| match RepoAddress::parse(repo) {
                Ok(RepoAddress::Remote(repo)) => repo.to_string(),
                Ok(RepoAddress::Path(path)) => {
                    let path = directory.join(path);
                    path.canonicalize().unwrap_or(path).display().to_string()
                }
                // It differs from every planned one.
                Err(_) => repo.to_owned(),
            });
        let differs =
            |given: Option<&String>, planned: &str| given.is_some_and(|given| given != planned);
        let agent = self.plan.agent.as_ref();
        let planned = match agent {
            Some(agent) => agent.model.as_deref().unwrap_or_default(),
            None => &self.plan.model,
        };
        let engine = request.engine;
        let name = agent.map_or("", |agent| &agent.name);
        let flags = [
            ("--model", differs(model.as_ref(), planned)),
            (
                "--engine",
                engine.is_some_and(|engine| engine != self.plan.engine),
            ),
            ("--agent", differs(request.agent.as_ref(), name)),
            ("--repo", differs(repo.as_ref(), &self.plan.repo)),
            (
                "--sandbox",
                differs(request.sandbox.as_ref(), &self.plan.sandbox),
            ),
            ("--profile", request.profile.is_some()),
            ("--rebuild", rebuild == ImageEffort::Rebuild),
        ];
        if !request.limits.is_empty() {
            return Err(AppError::usage(
                "a budget cannot be set for a run that goes on with `ralph run`",
                format!("run `{}` of this task is not finished", self.plan.run),
                format!("use `ralph continue {}` with the same flags", self.plan.run),
            ));
        }
        let Some((flag, _)) = flags.into_iter().find(|(_, differs)| *differs) else {
            return Ok(());
        };
        Err(AppError::usage(
            format!("`{flag}` cannot change an existing run"),
            "a run continues with the options that it was planned with",
            "omit it, or start over with `ralph run --new`",
        ))
    }
}
