//! `ralph run`: plans a run and works on it, or continues the task's unfinished run.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use ralph_app::AppError;
use ralph_app::planning::TASK_FILE;
use ralph_app::planning::{self, PlannedRun, RunRequest};
use ralph_app::runs::{
    ApprovalMode, ReadyRun, RunStart, UnfinishedRunChoice, UnfinishedRunPolicy, find_unfinished,
    plan_start, prepare_start, require_approval,
};
use ralph_app::trust::{TrustReview, refusal_error};
use ralph_core::image::ImageEffort;
use ralph_core::plan::EngineKind;
use ralph_core::task::TaskFile;
use serde_json::json;

use super::context::Context;
use super::detach::{self, DetachArgs, ProcessPlace};
use super::drive::drive;
use super::exit::ExitCode;
use super::image::ImageProgressOutput;
use super::questions::TerminalQuestions;
use super::resume;
use super::run_arg::RunArg;
use super::trust;
use crate::terminal::OutputMode;
use crate::terminal::lines::lifecycle;
use crate::terminal::styled_line::StyledLine;

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The task file
    #[arg(default_value = TASK_FILE)]
    pub file: PathBuf,
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
    /// Check for newer base images and rebuild the image
    #[arg(long)]
    pub rebuild: bool,
    /// Print the plan and start nothing
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
    let place = args.detach.place();
    if place == ProcessPlace::Background {
        detach::leave_terminal_session()?;
    }
    let request = args.request();
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
        return Box::pin(resume::resume(&run, place, args.json, context)).await;
    }
    let mode = if args.dry_run {
        ApprovalMode::Report
    } else {
        ApprovalMode::Require
    };
    let questions = (app, &TerminalQuestions as _);
    let review = require_approval(&request, (&file, &task), mode, questions).await?;
    if !review.is_clear() {
        return Box::pin(show_unapproved(
            &request,
            (file, task),
            &review,
            (context, args.json),
        ))
        .await;
    }
    if place == ProcessPlace::NewBackground {
        let arguments = detach::detached_arguments(context.arguments());
        return detach::start_in_background(arguments, args.json, context).await;
    }
    let planned = plan_start(&request, (file, task), app).await?;
    if args.dry_run {
        show_plan(&planned, &review, args.json, context)?;
        return Ok(ExitCode::Success);
    }
    let start = RunStart {
        planned,
        effort: args.effort(),
        unfinished_runs: if args.unfinished_run.new {
            UnfinishedRunPolicy::Allow
        } else {
            UnfinishedRunPolicy::Refuse
        },
    };
    let (run, mode) = Box::pin(prepare(start, args.json, context)).await?;
    if place == ProcessPlace::Background {
        detach::report_start(&run)?;
    }
    Box::pin(drive(run, mode)).await
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

/// Shows as much of the plan as possible for a run whose proposals are not approved, prints the
/// error and returns its exit code.
async fn show_unapproved(
    request: &RunRequest,
    task: (PathBuf, TaskFile),
    review: &TrustReview,
    (context, is_json): (&Context, bool),
) -> Result<ExitCode, AppError> {
    let refusal = refusal_error(review, &request.file, &context.app.layers());
    match planning::plan_run(request, task, &context.app).await {
        Ok(planned) => show_plan(&planned, review, is_json, context)?,
        Err(_) if is_json => {
            let proposals = json!({"proposals": trust::review_json(review)});
            context.output().print_json(&proposals)?;
        }
        Err(_) => drop(context.output().print_lines(&trust::review_lines(review))?),
    }
    context.output().print_error(&refusal, false);
    Ok(ExitCode::for_error(refusal.kind))
}

fn show_plan(
    planned: &PlannedRun,
    review: &TrustReview,
    is_json: bool,
    context: &Context,
) -> Result<(), AppError> {
    if is_json {
        let mut plan = serde_json::to_value(&planned.plan).expect("a plan is valid JSON");
        plan["proposals"] = trust::review_json(review);
        context.output().print_json(&plan)?;
        return Ok(());
    }
    context
        .output()
        .print_lines(&lifecycle::plan_lines(&planned.plan))?;
    let notices: Vec<StyledLine> = planned
        .notices
        .iter()
        .map(|notice| StyledLine::from_text("note: ").plain(notice))
        .collect();
    context.output().print_lines(&notices)?;
    let proposals = trust::review_lines(review);
    if !proposals.is_empty() {
        context
            .output()
            .print_lines(&[StyledLine::from_text("the repository proposes:")])?;
        context.output().print_lines(&proposals)?;
    }
    Ok(())
}
