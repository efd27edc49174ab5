//! `ralph __complete`: the values that completion scripts offer for the word at the cursor: runs,
//! profiles, agents and keys of settings. It never fails; without values, the script offers its own.

use std::ffi::OsString;

use clap::{Arg, Command};
use ralph_app::planning::effective_settings;
use ralph_app::providers::SANDBOX_PROVIDERS;
use ralph_app::{App, AppError};
use ralph_engine::journal::RunOutline;
use ralph_engine::store::StateDir;

use super::command_line::command_line;
use super::context::Context;
use super::exit::ExitCode;

/// The hidden first argument.
const COMMAND: &str = "__complete";

/// The services of the token commands whose credentials ralph can use.
const TOKEN_AGENTS: [&str; 4] = ["claude", "codex", "github", "opencode"];

/// The number of runs that are offered.
const MAX_RUNS: usize = 100;

/// Returns the arguments of this process after the hidden command, if it has that.
pub(super) fn requested_words() -> Option<Vec<OsString>> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == COMMAND).then(|| arguments.collect())
}

/// Prints the values, one per line. The first word is the position of the cursor's word among the
/// others.
pub(super) fn run(words: &[OsString], context: &Context) -> ExitCode {
    let words: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into())
        .collect();
    let Some((position, words)) = words.split_first() else {
        return ExitCode::Success;
    };
    let Ok(position) = position.parse::<usize>() else {
        return ExitCode::Success;
    };
    let current = words.get(position).map_or("", String::as_str);
    // bash passes `--agent=c` as three words, zsh and fish as one.
    let current = if current == "=" { "" } else { current };
    let before = words.get(1..position.min(words.len())).unwrap_or_default();
    let Some((command, argument)) = argument_at(&command_line(), before, current) else {
        return ExitCode::Success;
    };
    let typed = option_and_value(current).map_or(current, |(_, value)| value);
    let text: String = values(&command, &argument, &context.app)
        .into_iter()
        .filter(|value| value.starts_with(typed) && is_safe(value))
        .map(|value| value + "\n")
        .collect();
    // A script has no place for an error.
    if let Err(error) = context.output().print_text(&text) {
        tracing::debug!(%error, "cannot print completions");
    }
    ExitCode::Success
}

/// Returns whether a shell inserts a value without quotes. Names of a repository's files may have any
/// characters.
fn is_safe(value: &str) -> bool {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "._-/:".contains(c);
    !value.is_empty() && !value.starts_with('-') && value.chars().all(is_safe)
}

/// Returns the parts of a word such as `--agent=claude`.
fn option_and_value(word: &str) -> Option<(&str, &str)> {
    word.split_once('=').filter(|_| word.starts_with("--"))
}

/// Returns the name of the command and the argument to which the word at the cursor belongs.
fn argument_at(root: &Command, before: &[String], current: &str) -> Option<(String, Arg)> {
    let mut command = root;
    let mut positionals = 0;
    let mut open_option: Option<&Arg> = None;
    for word in before {
        if word == "=" {
            continue;
        }
        if open_option.take().is_some() {
            continue;
        }
        if word.starts_with('-') {
            open_option = option_with_value(root, command, word);
        } else if let Some(subcommand) = command.find_subcommand(word) {
            command = subcommand;
            positionals = 0;
        } else {
            positionals += 1;
        }
    }
    let argument = if let Some((option, _)) = option_and_value(current) {
        option_with_value(root, command, option)
    } else if open_option.is_some() || current.starts_with('-') {
        open_option
    } else {
        command.get_positionals().nth(positionals)
    };
    Some((command.get_name().to_owned(), argument?.clone()))
}

/// Returns an option whose value is the next word.
fn option_with_value<'a>(root: &'a Command, command: &'a Command, word: &str) -> Option<&'a Arg> {
    let (long, short) = (word.strip_prefix("--"), word.strip_prefix('-'));
    let arguments = command.get_arguments().chain(root.get_arguments());
    let mut matching = arguments.filter(|argument| match long {
        Some(long) => argument.get_long() == Some(long),
        None => argument
            .get_short()
            .is_some_and(|name| Some(&*name.to_string()) == short),
    });
    let argument = matching.next()?;
    argument.get_action().takes_values().then_some(argument)
}

/// Returns the values of an argument.
fn values(command: &str, argument: &Arg, app: &App) -> Vec<String> {
    let plain = |names: &[&str]| Ok(names.iter().map(|&name| name.to_owned()).collect());
    let found = match (command, argument.get_id().as_str()) {
        (_, "sandbox") => plain(&SANDBOX_PROVIDERS),
        (_, "mode") => plain(&["autonomous", "guided", "debug"]),
        // Only the directories of other runs are gone.
        ("adopt", "run") => return Vec::new(),
        ("store-token" | "check-token" | "get-token", "agent") => plain(&TOKEN_AGENTS),
        (_, "run") => runs(app),
        (_, "profile") => app
            .profiles()
            .map(|profiles| profiles.iter().map(|(name, _)| name.to_owned()).collect()),
        (_, "agent") => app
            .agents()
            .map(|agents| agents.all().map(|agent| agent.name.clone()).collect()),
        (_, "key") => effective_settings(app)
            .map(|settings| settings.into_iter().map(|setting| setting.key).collect()),
        _ => Ok(fixed_values(argument)),
    };
    found.unwrap_or_else(|error| {
        tracing::debug!(%error, "there are no completions");
        Vec::new()
    })
}

/// Returns the values that the command line lists for a positional argument: the script for fish has none
/// of them. The scripts have those of options, with their descriptions.
fn fixed_values(argument: &Arg) -> Vec<String> {
    if !argument.is_positional() {
        return Vec::new();
    }
    let values = argument.get_possible_values().into_iter();
    values.map(|value| value.get_name().to_owned()).collect()
}

/// Returns the newest runs and their tasks.
fn runs(app: &App) -> Result<Vec<String>, AppError> {
    let state = StateDir::read_only(app.environment().state_dir()?);
    let newest: Vec<_> = state.runs()?.into_iter().rev().take(MAX_RUNS).collect();
    let mut names: Vec<String> = newest.iter().map(ToString::to_string).collect();
    for id in &newest {
        let task = RunOutline::read(&state.run(id).journal()).task_id;
        names.extend(task.filter(|task| !names.contains(task)));
    }
    if !names.is_empty() {
        names.push("last".to_owned());
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_at_the_cursor_belongs_to_an_argument() {
        let root = command_line();
        for (line, expected) in [
            ("show ", Some("run")),
            ("-v logs -f ", Some("run")),
            ("profile last ", Some("profile")),
            ("models test ", Some("profile")),
            ("config get ", Some("key")),
            ("run --agent ", Some("agent")),
            ("run task.md --profile ", Some("profile")),
            ("run --agent claude --sandbox ", Some("sandbox")),
            ("run --agent=cl", Some("agent")),
            ("run --agent = cl", Some("agent")),
            ("run --new=x", None),
            ("mode last ", Some("mode")),
            ("show last ", None),
            ("completions ", Some("shell")),
            ("show -", None),
            ("", None),
        ] {
            let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let current = words.pop().unwrap();
            let found = argument_at(&root, &words, &current);
            let argument = found.map(|(_, argument)| argument.get_id().to_string());
            assert_eq!(argument.as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn a_positional_argument_has_the_values_of_the_command_line() {
        let root = command_line();
        for (line, expected) in [
            (
                "completions ",
                &["bash", "elvish", "fish", "powershell", "zsh"][..],
            ),
            ("cost --by ", &[]),
            ("lint ", &[]),
        ] {
            let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let current = words.pop().unwrap();
            let (_, argument) = argument_at(&root, &words, &current).unwrap();
            assert_eq!(fixed_values(&argument), expected, "{line}");
        }
    }

    #[test]
    fn only_plain_names_are_offered() {
        for (value, expected) in [
            ("zai/glm-4.7", true),
            ("$(touch x)", false),
            ("a b", false),
            ("-x", false),
            ("", false),
        ] {
            assert_eq!(is_safe(value), expected, "{value}");
        }
    }
}
