//! What can be typed about the care for sandboxes and for the machine.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};

use super::args::EngineName;
use super::duration;

/// A sandbox provider that can be looked after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProviderName {
    /// Containers of a Docker Engine
    Docker,
    /// Directories and processes of this machine
    Local,
}

/// Arguments of `preflight`.
#[derive(Debug, Args)]
pub struct PreflightArgs {
    /// The task file; left out, it is `ralph_task.md` if that is there
    pub file: Option<PathBuf>,
    /// Take this repository instead of the task's
    #[arg(long, value_name = "PATH|URL", value_parser = NonEmptyStringValueParser::new())]
    pub repo: Option<String>,
    /// Look at this sandbox provider
    #[arg(long, value_name = "PROVIDER", value_parser = NonEmptyStringValueParser::new())]
    pub sandbox: Option<String>,
    /// Choose who does the work
    #[arg(long, value_enum)]
    pub engine: Option<EngineName>,
    /// Look at this agent: claude, codex, opencode, or one of config/agents.toml
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub agent: Option<String>,
    /// Look at this model profile
    #[arg(long, conflicts_with = "model", value_parser = NonEmptyStringValueParser::new())]
    pub profile: Option<String>,
    /// Look at this model, such as scripted:FILE.jsonl
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    pub model: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `selftest`.
#[derive(Debug, Args)]
pub struct SelftestArgs {
    /// The sandbox provider
    #[arg(
        long = "type",
        value_enum,
        value_name = "TYPE",
        default_value = "docker"
    )]
    pub provider: ProviderName,
    /// Try out this coding agent; left out, it is claude
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub agent: Option<String>,
    /// Need no token and no network: the agent asks a stand-in for its provider inside of this program
    #[arg(long)]
    pub offline: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `prune-sandboxes`.
#[derive(Debug, Args)]
pub struct PruneArgs {
    /// Only sandboxes of this provider
    #[arg(long = "type", value_enum, value_name = "TYPE")]
    pub provider: Option<ProviderName>,
    /// Also those of runs that were not resumed for so long, such as 2d or 12h
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub max_age: Option<Duration>,
    /// List them and remove nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
