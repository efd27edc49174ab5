//! `ralph preflight`: checks everything that a run needs, without changing anything.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use ralph_app::AppError;
use ralph_app::checks::run_preflight;
use ralph_app::planning::{RunRequest, TASK_FILE};
use ralph_core::plan::EngineKind;

use super::checks::CheckReport;
use super::context::Context;
use super::exit::ExitCode;
use super::run::EngineName;

/// Arguments of `preflight`.
#[derive(Debug, Args)]
pub(super) struct PreflightArgs {
    /// The task file [default: `ralph_task.md`, if it exists]
    pub file: Option<PathBuf>,
    /// Use this repository instead of the task's
    #[arg(long, value_name = "PATH|URL", value_parser = NonEmptyStringValueParser::new())]
    pub repo: Option<String>,
    /// Check this sandbox provider
    #[arg(long, value_name = "PROVIDER", value_parser = NonEmptyStringValueParser::new())]
    pub sandbox: Option<String>,
    /// Use this engine
    #[arg(long, value_enum)]
    pub engine: Option<EngineName>,
    /// Check this agent: claude, codex, opencode, or one from config/agents.toml
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub agent: Option<String>,
    /// Check this model profile
    #[arg(long, conflicts_with = "model", value_parser = NonEmptyStringValueParser::new())]
    pub profile: Option<String>,
    /// Check this model, such as scripted:FILE.jsonl
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    pub model: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs and prints all checks. A failed check sets the exit code to 1.
pub(super) async fn run(args: PreflightArgs, context: &Context) -> Result<ExitCode, AppError> {
    let mut checks = CheckReport::new("preflight", context, args.json);
    let request = RunRequest {
        repo: args.repo,
        sandbox: args.sandbox,
        engine: args.engine.map(EngineKind::from),
        agent: args.agent,
        profile: args.profile,
        model: args.model,
        ..RunRequest::for_file(TASK_FILE)
    };
    Box::pin(run_preflight(args.file, request, &context.app, &mut checks)).await?;
    checks.finish()
}
