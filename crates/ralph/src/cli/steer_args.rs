//! What can be typed to tell a run something while it works.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use ralph_core::advice::NoteKind;

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

/// Arguments of `guardrail`.
#[derive(Debug, Args)]
pub struct GuardrailArgs {
    /// Which run.
    #[command(flatten)]
    pub run: RunArg,
    /// Name the sign in a few words
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    pub name: String,
    /// Say when the mistake tends to happen
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    pub trigger: String,
    /// Say what to do instead
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    pub instruction: String,
    /// Say what showed it
    #[arg(long, default_value = "")]
    pub evidence: String,
}

/// Arguments of `note`.
#[derive(Debug, Args)]
pub struct NoteArgs {
    /// Which run.
    #[command(flatten)]
    pub run: RunArg,
    /// The hint, in one line
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub text: String,
    /// Say what it is about
    #[arg(long, value_enum, default_value = "clarify")]
    pub kind: NoteKindName,
    /// Say who gives it
    #[arg(long, default_value = "")]
    pub author: String,
}

/// What a note is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NoteKindName {
    /// It makes a requirement clear
    Clarify,
    /// It points to a file
    File,
    /// It tells a decision
    Decision,
}

impl From<NoteKindName> for NoteKind {
    fn from(name: NoteKindName) -> Self {
        match name {
            NoteKindName::Clarify => Self::Clarify,
            NoteKindName::File => Self::File,
            NoteKindName::Decision => Self::Decision,
        }
    }
}

/// Arguments of `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Which run.
    #[command(flatten)]
    pub run: RunArg,
    /// The directory, which is empty or does not exist
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Write the changes as one patch file instead of a checkout
    #[arg(long)]
    pub patch: bool,
}

/// Arguments of `task`.
#[derive(Debug, Args)]
pub struct TaskArgs {
    /// Which run.
    #[command(flatten)]
    pub run: RunArg,
    /// The changed task file [default: the one that the run was started with]
    pub file: Option<PathBuf>,
}

/// Arguments of `profile`.
#[derive(Debug, Args)]
pub struct ProfileArgs {
    /// Which run.
    #[command(flatten)]
    pub run: RunArg,
    /// The profile in config/models.yaml
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub profile: String,
}
