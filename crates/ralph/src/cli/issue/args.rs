//! The arguments of `issue` and `poll`.

use std::time::Duration;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use ralph_app::issues::{IssueRunOptions, PendingRebuild};
use ralph_core::image::ImageEffort;
use ralph_core::plan::EngineKind;

use crate::cli::budget_args::BudgetArgs;
use crate::cli::run::EngineName;
use ralph_app::duration;

/// Arguments of `issue`.
#[derive(Debug, Args)]
pub(in crate::cli) struct IssueArgs {
    /// The number of the issue
    #[arg(value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub number: u64,
    #[command(flatten)]
    pub work: IssueWorkArgs,
    /// Print JSON, one record per line
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `poll`.
#[derive(Debug, Args)]
pub(in crate::cli) struct PollArgs {
    /// Look for ready issues this often
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_interval)]
    pub interval: Duration,
    /// Start no more work after this time
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub timeout: Option<Duration>,
    /// Work on this many issues at the same time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub workers: Option<u32>,
    #[command(flatten)]
    pub work: IssueWorkArgs,
    /// Print JSON, one record per line
    #[arg(long)]
    pub json: bool,
}

/// Arguments of the runs of issues.
#[derive(Debug, Args)]
pub(in crate::cli) struct IssueWorkArgs {
    /// Use this repository instead of the working directory's
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
    #[arg(long, conflicts_with_all = ["model", "agent"], value_parser = NonEmptyStringValueParser::new())]
    pub profile: Option<String>,
    /// Use this model
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    pub model: Option<String>,
    #[command(flatten)]
    pub budgets: BudgetArgs,
    /// Check for newer base images and rebuild the image, before the first run
    #[arg(long)]
    pub rebuild: bool,
    /// Push the branch, which ralph always does
    #[arg(long, hide = true)]
    pub push: bool,
}

impl IssueWorkArgs {
    /// Returns the user's overrides.
    pub(super) fn options(&self) -> IssueRunOptions {
        IssueRunOptions {
            sandbox: self.sandbox.clone(),
            engine: self.engine.map(EngineKind::from),
            agent: self.agent.clone(),
            profile: self.profile.clone(),
            model: self.model.clone(),
            limits: self.budgets.limits(),
            rebuild: PendingRebuild::new(if self.rebuild {
                ImageEffort::Rebuild
            } else {
                ImageEffort::Reuse
            }),
        }
    }
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = duration::parse(text)?;
    if interval.is_zero() {
        return Err("expected a time above 0, such as `30s`".to_owned());
    }
    Ok(interval)
}
