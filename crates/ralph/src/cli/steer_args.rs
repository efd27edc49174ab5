//! What can be typed to steer a run while it works.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::args::RunArg;

/// Arguments of `allow`.
#[derive(Debug, Args)]
pub struct AllowArgs {
    /// Which run.
    #[command(flatten)]
    pub run: RunArg,
    /// The host: a name, *.name for all names below it, or name:port
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub host: String,
    /// List it in the project's ralph.toml too, for later runs
    #[arg(long)]
    pub project: bool,
}

/// Arguments of `message`.
#[derive(Debug, Args)]
pub struct MessageArgs {
    /// Which run.
    #[command(flatten)]
    pub run: RunArg,
    /// The message
    #[arg(required = true, num_args = 1.., value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub words: Vec<String>,
}
