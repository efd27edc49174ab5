//! Plans and creates the run of a request, or finds the unfinished run that continues instead.

use std::path::{Path, PathBuf};

use ralph_app::issues::follow_issue;
use ralph_app::new_task;
use ralph_app::planning::{self, RunRequest};
use ralph_app::runs::{
    ApprovalMode, OnReserved, PlanPreview, ReadyRun, ResumeOutcome, RunStart, StartQuestions,
    UnfinishedRunChoice, UnfinishedRunPolicy, confirm_sandbox, find_unfinished, plan_start,
    prepare_resume, prepare_start, preview_start, require_approval,
};
use ralph_app::trust::TrustReviewReport;
use ralph_app::{App, AppError};
use ralph_core::id::RunId;
use ralph_core::repo_address::RepoAddress;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::start_request::{RecordedQuestions, StartQuestion, StartRequest, TaskSource};

/// Why a run did not start.
#[derive(Debug)]
pub(crate) struct StartError {
    pub(crate) error: AppError,
    /// The question whose answer can change the result.
    pub(crate) question: Option<StartQuestion>,
}

/// The result of a request for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Started {
    /// The run was created.
    Created(RunId),
    /// The task's unfinished run continues.
    Continued(RunId),
    /// An earlier request with the same key created the run.
    Repeated(RunId),
}

/// The plan of a run that does not start.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StartPreview {
    /// The plan; null if the repository is on a source host and cannot be read.
    #[schema(value_type = Option<Object>)]
    plan: Value,
    /// The proposals of the repository.
    proposals: TrustReviewReport,
    /// Everything that a start would refuse, each as `what`, `why` and `fix`.
    #[schema(value_type = Vec<Object>)]
    missing: Vec<Value>,
    /// The questions that the request does not answer.
    questions: Vec<AskedQuestion>,
    notices: Vec<String>,
}

/// A question with the field that answers it.
#[derive(Debug, Serialize, ToSchema)]
struct AskedQuestion {
    field: &'static str,
    #[serde(flatten)]
    question: StartQuestion,
}

/// A run to drive, and whether it is new.
pub(super) struct PreparedStart {
    pub(super) run: Box<ReadyRun>,
    pub(super) is_new: bool,
}

impl From<AppError> for StartError {
    fn from(error: AppError) -> Self {
        Self {
            error,
            question: None,
        }
    }
}

/// Creates the run of a request, or opens the unfinished run that continues.
pub(super) async fn prepare_new(
    start: StartRequest,
    app: &App,
    on_reserved: Box<OnReserved>,
) -> Result<PreparedStart, StartError> {
    let app = &app.in_directory(&start.directory);
    require_same_environment(&start, app)?;
    let questions = RecordedQuestions::new(start.answers.clone());
    let prepared = Box::pin(prepare_with(start, (app, &questions), on_reserved)).await;
    prepared.map_err(|error| StartError {
        error,
        question: questions.take(),
    })
}

async fn prepare_with(
    start: StartRequest,
    (app, questions): (&App, &RecordedQuestions),
    on_reserved: Box<OnReserved>,
) -> Result<PreparedStart, AppError> {
    let request = task_request(&start, app).await?;
    let (file, task) = planning::read_task(&request.file, app)?;
    let unfinished = match find_unfinished(&file.to_string_lossy(), &app.state_dir()?) {
        // An unreadable run does not prevent a new one.
        Err(_) if start.unfinished == Some(UnfinishedRunChoice::New) => None,
        found => found?,
    };
    if let Some(unfinished) = unfinished {
        let choice = unfinished.choose(start.unfinished, questions)?;
        if choice == UnfinishedRunChoice::Resume {
            unfinished.refuse_other_plan(&request, start.effort, app)?;
            return Box::pin(resume_unfinished(&unfinished.plan.run, app)).await;
        }
    }
    let asking = (app, questions as &dyn StartQuestions);
    let request = confirm_sandbox(request, &task, asking).await?;
    require_approval(&request, (&file, &task), ApprovalMode::Require, asking).await?;
    let planned = Box::pin(plan_start(&request, (file, task), app)).await?;
    let run_start = RunStart {
        planned,
        effort: start.effort,
        unfinished_runs: match start.unfinished {
            Some(UnfinishedRunChoice::New) => UnfinishedRunPolicy::Allow,
            Some(UnfinishedRunChoice::Resume) | None => UnfinishedRunPolicy::Refuse,
        },
        on_reserved: Some(on_reserved),
    };
    let mut run = Box::pin(prepare_start(run_start, app, &mut |_progress| {})).await?;
    if let Some(mode) = start.mode {
        run.request_mode(mode)?;
    }
    Ok(PreparedStart {
        run: Box::new(run),
        is_new: true,
    })
}

async fn resume_unfinished(run: &RunId, app: &App) -> Result<PreparedStart, AppError> {
    match Box::pin(prepare_resume(run.as_str(), app)).await? {
        ResumeOutcome::Ready(run) => {
            let run = Box::pin(follow_issue(*run, app)).await;
            Ok(PreparedStart {
                run: Box::new(run),
                is_new: false,
            })
        }
        ResumeOutcome::Sent(_) => Err(AppError::runtime(
            format!("run `{run}` of this task is under way"),
            "another process works on it",
            "follow it, or start another one",
        )),
    }
}

/// Returns the plan of a request, with everything that prevents its start.
pub(super) async fn preview(start: StartRequest, app: &App) -> Result<StartPreview, StartError> {
    let app = &app.in_directory(&start.directory);
    require_same_environment(&start, app)?;
    let questions = RecordedQuestions::new(start.answers.clone());
    Ok(Box::pin(preview_with(start, (app, &questions))).await?)
}

async fn preview_with(
    start: StartRequest,
    (app, questions): (&App, &RecordedQuestions),
) -> Result<StartPreview, AppError> {
    let request = task_request(&start, app).await?;
    let (file, task) = planning::read_task(&request.file, app)?;
    let mut asked = Vec::new();
    let found = find_unfinished(&file.to_string_lossy(), &app.state_dir()?);
    if let Ok(Some(unfinished)) = found
        && start.unfinished.is_none()
    {
        questions.continue_run(&unfinished);
        asked.extend(questions.take());
    }
    let asking = (app, questions as &dyn StartQuestions);
    let request = confirm_sandbox(request, &task, asking).await?;
    asked.extend(questions.take());
    let of_file = (file.as_path(), &task);
    let review = require_approval(&request, of_file, ApprovalMode::Report, asking).await?;
    if !review.pending.is_empty() {
        questions.approve(&review);
        asked.extend(questions.take());
    }
    let proposals = TrustReviewReport::new(&review);
    drop(review);
    let preview = Box::pin(preview_start(&request, (file, task), app)).await?;
    Ok(StartPreview::new(preview, proposals, asked, app))
}

impl StartPreview {
    fn new(
        preview: PlanPreview,
        proposals: TrustReviewReport,
        asked: Vec<StartQuestion>,
        app: &App,
    ) -> Self {
        let redactor = app.redactor();
        let missing = preview.missing.into_iter().map(|error| {
            let error = error.redacted(&redactor);
            json!({"what": error.what, "why": error.why, "fix": error.fix})
        });
        let (plan, notices) = match preview.planned {
            Some(planned) => (json!(planned.plan), planned.notices),
            None => (Value::Null, Vec::new()),
        };
        let questions = asked.into_iter().map(|question| AskedQuestion {
            field: question.field(),
            question,
        });
        Self {
            plan,
            proposals,
            missing: missing.collect(),
            questions: questions.collect(),
            notices,
        }
    }
}

/// Returns the request with the file of its task, which is written first if the request contains the
/// task.
async fn task_request(start: &StartRequest, app: &App) -> Result<RunRequest, AppError> {
    let request = start.request.clone();
    let repo = request.repo.as_deref().map(RepoAddress::parse);
    if let Some(Ok(address)) = repo {
        app.typed_hosts().add(&address);
    }
    match &start.source {
        TaskSource::File(file) => Ok(RunRequest {
            file: file.clone(),
            ..request
        }),
        TaskSource::Text(text) => Ok(RunRequest {
            file: store_text(text, app)?,
            ..request
        }),
        TaskSource::Sentence(sentence) => {
            let created = new_task::create_for_run(sentence, request, app).await?;
            Ok(created.request)
        }
    }
}

fn store_text(text: &str, app: &App) -> Result<PathBuf, AppError> {
    // A rejected text is reported with its findings and stored nowhere.
    planning::check_task_text(Path::new("task"), text.as_bytes())?;
    new_task::store_task_text(text, app)
}

/// Returns an error that names what only the environment of the caller has.
fn require_same_environment(start: &StartRequest, app: &App) -> Result<(), AppError> {
    match &start.environment {
        Some(environment) => environment.require_same(app.environment()),
        None => Ok(()),
    }
}
