//! The argument that names a run.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use ralph_app::{App, AppError};
use ralph_engine::store::RunDir;

/// The name of the last run: of this repository if it has one, or else of all.
pub(super) const LAST_RUN: &str = "last";

/// A run, for commands whose other arguments are options or may be left out.
#[derive(Debug, Args)]
pub(super) struct RunArg {
    /// The run: its id or a prefix of it, its task's id, or `last`
    #[arg(default_value = LAST_RUN, value_parser = NonEmptyStringValueParser::new())]
    pub run: String,
}

/// A run before a required value: `[RUN] <VALUE>`. A single argument is the value.
#[derive(Debug, Args)]
pub(super) struct LeadingRunArg {
    /// The run: its id or a prefix of it, its task's id, or `last` [default: last]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub run: Option<String>,
}

impl LeadingRunArg {
    /// Returns the run and the value that follows it. `usage` names the command and the value, such as
    /// `("note", "TEXT")`.
    pub(super) fn with_value(
        self,
        value: Option<String>,
        usage: (&str, &str),
    ) -> Result<(RunArg, String), AppError> {
        match (self.run, value) {
            (Some(run), Some(value)) => Ok((RunArg { run }, value)),
            // A run without a value: the user forgot the value.
            (Some(run), None) if run == LAST_RUN || is_run_id(&run) => Err(missing_value(usage)),
            (Some(value), None) | (None, Some(value)) => {
                let run = LAST_RUN.to_owned();
                Ok((RunArg { run }, value))
            }
            (None, None) => Err(missing_value(usage)),
        }
    }

    /// Returns the run and the text that follows it, in one or several words. A first word that names
    /// no run may be the start of a text without quotes.
    pub(super) fn with_words(
        self,
        words: &[String],
        usage: (&str, &str),
        app: &App,
    ) -> Result<(RunDir, String), AppError> {
        let text = (!words.is_empty()).then(|| words.join(" "));
        let (run, text) = self.with_value(text, usage)?;
        let dir = app.find_run(&run.run).map_err(|error| {
            if words.is_empty() || !error.what.starts_with("there is no run") {
                return error;
            }
            let command = usage.0;
            AppError {
                fix: format!(
                    "list them with `ralph runs`, or quote the whole text to use the last run: `ralph {command} '…'`"
                ),
                ..error
            }
        })?;
        Ok((dir, text))
    }
}

/// Returns whether a text has the form of a complete id: `260301-100000-0001`.
fn is_run_id(text: &str) -> bool {
    let is_number = |part: &str| part.len() == 6 && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = text.split('-').collect();
    match parts.as_slice() {
        [date, time, random] => is_number(date) && is_number(time) && random.len() == 4,
        _ => false,
    }
}

fn missing_value((command, name): (&str, &str)) -> AppError {
    AppError::usage(
        format!("missing <{name}>"),
        format!("`ralph {command}` requires it"),
        format!("see `ralph {command} --help`"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_argument_is_the_value() {
        let split = |run: &str, value: Option<&str>| {
            let run = LeadingRunArg {
                run: (!run.is_empty()).then(|| run.to_owned()),
            };
            match run.with_value(value.map(str::to_owned), ("note", "TEXT")) {
                Ok((RunArg { run }, text)) => format!("{run}: {text}"),
                Err(error) => error.parts().collect::<Vec<_>>().join(" — "),
            }
        };
        let missing = "missing <TEXT> — `ralph note` requires it — see `ralph note --help`";
        assert_eq!(split("task-1", Some("a b")), "task-1: a b");
        assert_eq!(split("use the parser", None), "last: use the parser");
        assert_eq!(split("26", None), "last: 26");
        assert_eq!(split("last", None), missing);
        assert_eq!(split("260301-100000-0001", None), missing);
        assert_eq!(split("", None), missing);
    }
}
