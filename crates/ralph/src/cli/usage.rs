//! Shortens clap's errors to one line in ralph's format: what, why, what to do.

use std::error::Error as _;
use std::ffi::OsString;
use std::io::Write as _;

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use ralph_app::AppError;
use ralph_core::task::nearest;

use super::command_line::Cli;
use super::exit::ExitCode;
use super::output::CliOutput;
use crate::terminal::StdoutStyle;

/// Prints clap's message and returns the exit code.
pub(super) fn report(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    let is_help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if is_help {
        if let Err(error) = error.print() {
            tracing::debug!(%error, "cannot print the help");
        }
        return if error.use_stderr() {
            ExitCode::Usage
        } else {
            ExitCode::Success
        };
    }
    let Some(one_line) = to_cli_error(error, &NamedCommand::find(arguments)) else {
        if let Err(error) = writeln!(std::io::stderr(), "{}", error.render()) {
            tracing::debug!(%error, "cannot print the usage error");
        }
        return ExitCode::Usage;
    };
    let is_json = arguments.iter().any(|argument| argument == "--json");
    CliOutput::new(StdoutStyle::Plain).print_error(&one_line, is_json);
    ExitCode::Usage
}

/// Returns the error in one line, or `None` for the kinds that do not fit in one.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "clap's list of kinds is open; other kinds keep clap's own message"
)]
fn to_cli_error(error: &clap::Error, named: &NamedCommand) -> Option<AppError> {
    let command = &named.name;
    let mut fix = suggestion(error).unwrap_or_else(|| format!("see `{command} --help`"));
    let argument = context_text(error, ContextKind::InvalidArg);
    let value = context_text(error, ContextKind::InvalidValue);
    let (what, why) = match error.kind() {
        ErrorKind::UnknownArgument => {
            let argument = argument?;
            let kind = if argument.starts_with('-') {
                "option"
            } else {
                "argument"
            };
            (
                format!("unexpected {kind} `{argument}`"),
                format!("`{command}` does not accept it"),
            )
        }
        ErrorKind::InvalidSubcommand => {
            let name = context_text(error, ContextKind::InvalidSubcommand)?;
            let why = format!("{command} has no such command");
            fix = named.suggestion(&name);
            (format!("unknown command `{name}`"), why)
        }
        ErrorKind::MissingRequiredArgument => (
            format!("missing {}", argument?),
            format!("`{command}` requires it"),
        ),
        ErrorKind::InvalidValue if value.as_deref().is_none_or(str::is_empty) => (
            format!("no value for {}", argument?),
            "a value is required".to_owned(),
        ),
        ErrorKind::InvalidValue => (
            format!("invalid value `{}` for {}", value?, argument?),
            format!(
                "possible values: {}",
                context_text(error, ContextKind::ValidValue)?
            ),
        ),
        ErrorKind::ValueValidation => (
            format!("invalid value `{}` for {}", value?, argument?),
            error.source()?.to_string(),
        ),
        ErrorKind::ArgumentConflict => {
            let argument = argument?;
            match context_text(error, ContextKind::PriorArg) {
                Some(prior) if prior == argument => (
                    format!("{argument} is given more than once"),
                    "it can be given only once".to_owned(),
                ),
                prior => (
                    format!("{argument} cannot be used with {}", prior?),
                    "only one of them can be given".to_owned(),
                ),
            }
        }
        _ => return None,
    };
    Some(AppError::usage(what, why, fix))
}

fn suggestion(error: &clap::Error) -> Option<String> {
    [ContextKind::SuggestedArg, ContextKind::SuggestedValue]
        .into_iter()
        .find_map(|kind| context_text(error, kind))
        .map(|suggested| format!("did you mean `{}`?", suggested.replace(", ", "` or `")))
}

fn context_text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    let value = error.get(kind)?;
    if let ContextValue::String(text) = value {
        Some(text.clone())
    } else if let ContextValue::Strings(texts) = value {
        Some(texts.join(", "))
    } else {
        None
    }
}

/// Returns the command for a word that other programs use for the same.
fn synonym(typed: &str) -> Option<&'static str> {
    const SYNONYMS: [(&[&str], &str); 11] = [
        (&["kill", "cancel", "abort", "end"], "ralph stop"),
        (&["delete", "remove", "del"], "ralph rm"),
        (&["clean", "cleanup", "prune"], "ralph gc"),
        (&["watch", "follow", "view"], "ralph attach"),
        (&["tail"], "ralph logs -f"),
        (&["start", "exec", "go"], "ralph run"),
        (&["new", "create"], "ralph init"),
        (&["login", "auth"], "ralph store-token"),
        (&["undo", "revert", "reject"], "ralph discard"),
        (&["reply", "respond"], "ralph answer"),
        (&["version"], "ralph --version"),
    ];
    let (_, command) = SYNONYMS.iter().find(|(words, _)| words.contains(&typed))?;
    Some(command)
}

/// The command in the arguments: `ralph image build` of `ralph image build --foo`.
struct NamedCommand {
    name: String,
    command: clap::Command,
}

impl NamedCommand {
    fn find(arguments: &[OsString]) -> Self {
        let known = Cli::command();
        let mut command = &known;
        let mut name = "ralph".to_owned();
        for argument in arguments.iter().skip(1) {
            if let Some(found) = command.find_subcommand(argument) {
                name = format!("{name} {}", found.get_name());
                command = found;
            }
        }
        let command = command.clone();
        Self { name, command }
    }

    /// Suggests the subcommands that resemble a mistyped word, at most two.
    fn suggestion(&self, typed: &str) -> String {
        let mut names: Vec<&str> = self
            .command
            .get_subcommands()
            .flat_map(|command| {
                std::iter::once(command.get_name()).chain(command.get_all_aliases())
            })
            .collect();
        let mut similar = Vec::new();
        while similar.len() < 2
            && let Some(name) = nearest(typed, names.iter().copied())
        {
            names.retain(|known| *known != name);
            similar.push(name);
        }
        if similar.is_empty() {
            return match synonym(typed).filter(|_| self.name == "ralph") {
                Some(command) => format!("use `{command}`"),
                None => format!("see `{} --help`", self.name),
            };
        }
        format!("did you mean `{}`?", similar.join("` or `"))
    }
}
