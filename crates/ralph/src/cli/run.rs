//! `ralph run`: plans a run and works on it, or continues the task's unfinished run.

use std::path::{Path, PathBuf};

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use ralph_app::AppError;
use ralph_app::new_task;
use ralph_app::planning::TASK_FILE;
use ralph_app::planning::{self, RunRequest};
use ralph_app::runs::{
    ApprovalMode, PlanPreview, ReadyRun, RunStart, UnfinishedRunChoice, UnfinishedRunPolicy,
    confirm_sandbox, find_unfinished, plan_start, prepare_start, preview_start, require_approval,
};
use ralph_app::trust::{TrustReview, TrustReviewReport, refusal_error};
use ralph_core::image::ImageEffort;
use ralph_core::plan::EngineKind;
use ralph_core::repo_address::RepoAddress;
use ralph_core::task::TaskFile;
use serde_json::json;

use super::budget_args::BudgetArgs;
use super::context::Context;
use super::detach::{self, DetachArgs, ProcessPlace};
use super::drive::drive;
use super::exit::ExitCode;
use super::hand_over::{self, Display, NewRun};
use super::image::ImageProgressOutput;
use super::questions::TerminalQuestions;
use super::resume;
use super::run_arg::RunArg;
use super::trust;
use crate::terminal::OutputMode;
use crate::terminal::lines::lifecycle;
use crate::terminal::styled_line::{StyledLine, Tone};

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The task file
    #[arg(default_value = TASK_FILE)]
    pub file: PathBuf,
    /// Make a task from one sentence and run it
    #[arg(
        short = 'p',
        long,
        value_name = "SENTENCE",
        conflicts_with = "file",
        allow_hyphen_values = true
    )]
    pub prompt: Option<String>,
    /// Use this repository instead of the task's
    #[arg(long, value_name = "PATH|URL", value_parser = NonEmptyStringValueParser::new())]
    pub repo: Option<String>,
    /// Run commands in a sandbox of this provider
    #[arg(long, value_name = "PROVIDER", value_parser = NonEmptyStringValueParser::new())]
    pub sandbox: Option<String>,
    /// Use this engine
    #[arg(long, value_enum)]
    pub engine: Option<EngineName>,
    /// Use this agent: claude, codex, opencode, or one from config/agents.toml
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub agent: Option<String>,
    /// Use this model profile
    #[arg(long, conflicts_with = "model", value_parser = NonEmptyStringValueParser::new())]
    pub profile: Option<String>,
    /// Use this model, such as zai/glm-4.7 or scripted:FILE.jsonl
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    pub model: Option<String>,
    #[command(flatten)]
    pub budgets: BudgetArgs,
    /// Check for newer base images and rebuild the image
    #[arg(long)]
    pub rebuild: bool,
    /// Print the plan with everything that is missing for a start, and start nothing
    #[arg(long, conflicts_with = "detach")]
    pub dry_run: bool,
    #[command(flatten)]
    pub detach: DetachArgs,
    /// Print JSON, one record per line
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub unfinished_run: UnfinishedRunArgs,
}

/// The choice between a new run and the task's unfinished one.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(super) struct UnfinishedRunArgs {
    /// Start a new run even if the task has an unfinished one
    #[arg(long)]
    pub new: bool,
    /// Continue the task's unfinished run
    #[arg(long)]
    pub resume: bool,
}

/// The two engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum EngineName {
    /// The model answers with actions and ralph performs them
    Actions,
    /// A coding agent's program works inside the sandbox
    Agent,
}

impl From<EngineName> for EngineKind {
    fn from(name: EngineName) -> Self {
        match name {
            EngineName::Actions => Self::Actions,
            EngineName::Agent => Self::Agent,
        }
    }
}

/// Plans and starts a run, or continues the task's unfinished one.
pub(super) async fn run(args: RunArgs, context: &Context) -> Result<ExitCode, AppError> {
    let app = &context.app;
    let typed = args.repo.as_deref().map(RepoAddress::parse);
    if let Some(Ok(address)) = typed {
        app.typed_hosts().add(&address);
    }
    let place = args.detach.place().enter()?;
    let request = prepare_request(&args, context).await?;
    let (file, task) = planning::read_task(&request.file, app)?;
    let unfinished = match find_unfinished(&file.to_string_lossy(), &app.state_dir()?) {
        // An unreadable run does not prevent a new one.
        Err(_) if args.unfinished_run.new || args.dry_run => None,
        found => found?,
    };
    if let Some(unfinished) = unfinished
        && !args.dry_run
        && unfinished.choose(args.unfinished_choice(), &TerminalQuestions)?
            == UnfinishedRunChoice::Resume
    {
        unfinished.refuse_other_plan(&request, args.effort(), app)?;
        let run = RunArg {
            run: unfinished.plan.run.to_string(),
        };
        let worker = (place, args.detach.server_use());
        return Box::pin(resume::resume(&run, worker, args.json, context)).await;
    }
    let questions = (app, &TerminalQuestions as _);
    if args.dry_run {
        let task = (file, task);
        return Box::pin(show_preview(&request, task, (context, args.json))).await;
    }
    let request = confirm_sandbox(request, &task, questions).await?;
    require_approval(&request, (&file, &task), ApprovalMode::Require, questions).await?;
    if let Some(code) = start_elsewhere(&args, (&request, &file), place, context).await? {
        return Ok(code);
    }
    let planned = Box::pin(plan_start(&request, (file, task), app)).await?;
    let start = RunStart {
        planned,
        effort: args.effort(),
        unfinished_runs: if args.unfinished_run.new {
            UnfinishedRunPolicy::Allow
        } else {
            UnfinishedRunPolicy::Refuse
        },
        on_reserved: None,
    };
    let (run, mode) = Box::pin(prepare(start, args.json, context)).await?;
    if place == ProcessPlace::Background {
        detach::report_start(&run)?;
    }
    Box::pin(drive(run, mode)).await
}

/// Hands the run to the running server, or starts the background process. Returns none if this process
/// works on the run.
async fn start_elsewhere(
    args: &RunArgs,
    (request, file): (&RunRequest, &Path),
    place: ProcessPlace,
    context: &Context,
) -> Result<Option<ExitCode>, AppError> {
    if let Some(server) = args.detach.server_use().find(&context.app).await? {
        let new = NewRun {
            request,
            file,
            effort: args.effort(),
            is_new: args.unfinished_run.new,
        };
        let started = Box::pin(hand_over::start(&server, new, args.display(place, context)));
        return Ok(Some(started.await?));
    }
    if place != ProcessPlace::NewBackground {
        return Ok(None);
    }
    let mut arguments = detach::detached_arguments(context.arguments());
    if let Some(confirmed) = request.sandbox.as_ref().filter(|_| args.sandbox.is_none()) {
        // The background process cannot ask the user again.
        arguments.push(format!("--sandbox={confirmed}").into());
    }
    let started = detach::start_in_background(arguments, args.json, context).await?;
    Ok(Some(started))
}

/// Returns the request of the arguments. For a sentence, its task file is written first.
async fn prepare_request(args: &RunArgs, context: &Context) -> Result<RunRequest, AppError> {
    let request = args.request();
    let Some(sentence) = &args.prompt else {
        return Ok(request);
    };
    let created = new_task::create_for_run(sentence, request, &context.app).await?;
    // The command that started a background process has printed them.
    if !args.json && args.detach.place() != ProcessPlace::Background {
        let file = created.request.file.display().to_string();
        let test = &created.test;
        context.output().print_lines(&[
            StyledLine::new()
                .quiet("task file   ")
                .wrapped(Tone::Strong, &file),
            StyledLine::new().quiet("tests       ").wrapped(
                Tone::Plain,
                &format!("`{}` ({})", test.command, test.origin),
            ),
        ])?;
    }
    Ok(created.request)
}

impl RunArgs {
    fn request(&self) -> RunRequest {
        RunRequest {
            file: self.file.clone(),
            repo: self.repo.clone(),
            sandbox: self.sandbox.clone(),
            engine: self.engine.map(EngineKind::from),
            agent: self.agent.clone(),
            profile: self.profile.clone(),
            model: self.model.clone(),
            limits: self.budgets.limits(),
            issue: None,
        }
    }

    fn display<'a>(&self, place: ProcessPlace, context: &'a Context) -> Display<'a> {
        Display {
            place,
            is_json: self.json,
            context,
        }
    }

    fn unfinished_choice(&self) -> Option<UnfinishedRunChoice> {
        if self.unfinished_run.new {
            Some(UnfinishedRunChoice::New)
        } else {
            self.unfinished_run
                .resume
                .then_some(UnfinishedRunChoice::Resume)
        }
    }

    fn effort(&self) -> ImageEffort {
        if self.rebuild {
            ImageEffort::Rebuild
        } else {
            ImageEffort::Reuse
        }
    }
}

/// Prepares a planned run, and shows the progress of its image.
pub(super) async fn prepare(
    start: RunStart,
    is_json: bool,
    context: &Context,
) -> Result<(ReadyRun, OutputMode), AppError> {
    let mode = context.view_mode(is_json, &context.app.settings()?);
    let mut progress_output = ImageProgressOutput::with_mode(mode);
    let prepared = prepare_start(start, &context.app, &mut |progress| {
        progress_output.show(progress);
    })
    .await;
    match prepared {
        Ok(run) => Ok((run, mode)),
        Err(error) => Err(progress_output.into_error(error)),
    }
}

/// Shows the plan, the repository's proposals and everything that a start would refuse. A run whose
/// proposals are not approved is an error.
async fn show_preview(
    request: &RunRequest,
    (file, task): (PathBuf, TaskFile),
    (context, is_json): (&Context, bool),
) -> Result<ExitCode, AppError> {
    let app = &context.app;
    let questions = (app, &TerminalQuestions as _);
    let review = require_approval(request, (&file, &task), ApprovalMode::Report, questions).await?;
    let preview = Box::pin(preview_start(request, (file, task), app)).await;
    if review.is_clear() {
        show_plan(&preview?, &review, (context, is_json))?;
        return Ok(ExitCode::Success);
    }
    match preview {
        Ok(preview) => show_plan(&preview, &review, (context, is_json))?,
        Err(_) if is_json => {
            let proposals = json!({"proposals": TrustReviewReport::new(&review)});
            context.output().print_json(&proposals)?;
        }
        Err(_) => drop(
            context
                .output()
                .print_lines(&trust::review_lines(&review))?,
        ),
    }
    let refusal = refusal_error(&review, &request.file, &app.layers());
    context.output().print_error(&refusal, false);
    Ok(ExitCode::for_error(refusal.kind))
}

fn show_plan(
    preview: &PlanPreview,
    review: &TrustReview,
    (context, is_json): (&Context, bool),
) -> Result<(), AppError> {
    let PlanPreview { planned, missing } = preview;
    let redactor = context.app.redactor();
    let missing = missing
        .iter()
        .map(|error| error.clone().redacted(&redactor));
    let missing: Vec<String> = missing.map(|error| error.to_string()).collect();
    if is_json {
        let plan = planned
            .as_ref()
            .map(|planned| serde_json::to_value(&planned.plan));
        let plan = plan.map(|plan| plan.expect("a plan is valid JSON"));
        let mut plan = plan.unwrap_or_else(|| json!({}));
        plan["proposals"] = json!(TrustReviewReport::new(review));
        plan["missing"] = json!(missing);
        context.output().print_json(&plan)?;
        return Ok(());
    }
    let mut lines = match planned {
        Some(planned) => lifecycle::plan_lines(&planned.plan),
        None => vec![StyledLine::from_text(
            "the plan is not complete, because the repository cannot be read",
        )],
    };
    let notices = planned.iter().flat_map(|planned| &planned.notices);
    lines.extend(notices.map(|notice| StyledLine::from_text("note: ").plain(notice)));
    context.output().print_lines(&lines)?;
    let proposals = trust::review_lines(review);
    if !proposals.is_empty() {
        context
            .output()
            .print_lines(&[StyledLine::from_text("the repository proposes:")])?;
        context.output().print_lines(&proposals)?;
    }
    let missing = missing.iter();
    let missing = missing.map(|error| StyledLine::from_text("missing: ").plain(error));
    context
        .output()
        .print_lines(&missing.collect::<Vec<StyledLine>>())?;
    Ok(())
}
