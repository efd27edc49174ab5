//! The argument that names a run.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

/// A run, for commands that need nothing else.
#[derive(Debug, Args)]
pub(super) struct RunArg {
    /// The run: its id or a prefix of it, its task's id, or `last`
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub run: String,
}

/// A run, for commands that follow one.
#[derive(Debug, Args)]
pub(super) struct FollowedRunArg {
    /// The run: its id or a prefix of it, its task's id, or `last`
    #[arg(default_value = "last", value_parser = NonEmptyStringValueParser::new())]
    pub run: String,
}
