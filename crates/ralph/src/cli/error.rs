//! What people read when something went wrong: one line with what, why and what to do.

use std::fmt;

use ralph_core::secret::Redactor;
use ralph_engine::durable::StoreError;
use ralph_engine::journal::{JournalError, RALPH_VERSION, lost_to};
use ralph_engine::store::FindError;
use serde_json::json;

use super::exit::ExitCode;
use crate::config::{ConfigFileError, NoStateDirError, ProfileError};
use crate::terminal::sanitize;

/// Why a command could not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CliError {
    /// What could not be done, or what is wrong.
    pub what: String,
    /// Why; empty where the first part says it.
    pub why: String,
    /// What to do about it; empty where that is plain.
    pub fix: String,
    /// What the shell sees.
    pub code: ExitCode,
}

impl CliError {
    /// Makes an error of the command line itself.
    pub fn usage(what: impl Into<String>, why: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            why: why.into(),
            fix: fix.into(),
            code: ExitCode::Usage,
        }
    }

    /// Makes an error of something that did not work.
    pub fn runtime(
        what: impl Into<String>,
        why: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            code: ExitCode::Runtime,
            ..Self::usage(what, why, fix)
        }
    }

    /// Returns the error without secrets: what was typed may hold one.
    #[must_use]
    pub fn redacted(self, redactor: &Redactor) -> Self {
        let clean = |text: String| redactor.redact(&text).into_owned();
        Self {
            what: clean(self.what),
            why: clean(self.why),
            fix: clean(self.fix),
            code: self.code,
        }
    }

    /// Returns the error for scripts.
    pub fn json(&self) -> serde_json::Value {
        json!({"error": {"what": self.what, "why": self.why, "fix": self.fix}})
    }
}

impl fmt::Display for CliError {
    /// Prints one line, whatever is in the parts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = [&self.what, &self.why, &self.fix]
            .into_iter()
            .filter(|part| !part.is_empty())
            .map(|part| sanitize::line(part))
            .collect();
        write!(f, "ralph: {}", parts.join(" — "))
    }
}

impl std::error::Error for CliError {}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        let what = format!("cannot {} `{}`", error.doing, error.path.display());
        Self::runtime(what, error.source.to_string(), error.hint())
    }
}

impl From<JournalError> for CliError {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Store(error) => error.into(),
            JournalError::Empty { path } => Self::runtime(
                format!("journal `{}` has no run in it", path.display()),
                "it does not begin with a run's creation",
                "remove its directory, then start the task again with `ralph run`",
            ),
            JournalError::Damaged { path, line, why } => Self::runtime(
                format!("journal `{}` is damaged at line {line}", path.display()),
                why,
                "put back a copy of the file, or start the task again with `ralph run --new`",
            ),
            JournalError::Newer { .. } => Self::runtime(error.to_string(), "", UPGRADE_HINT),
            JournalError::Unknown { path, line, what } => Self::runtime(
                format!("journal `{}` has an {what} at line {line}", path.display()),
                format!("a newer ralph wrote it, this is ralph {RALPH_VERSION}"),
                UPGRADE_HINT,
            ),
            JournalError::Held { run, pid } => Self::runtime(
                format!("run `{run}` is taken"),
                match pid {
                    Some(pid) => format!("process {pid} works on it"),
                    None => "another process works on it".to_owned(),
                },
                format!("steer it with `ralph pause {run}` or `ralph stop {run}`"),
            ),
            JournalError::Lost { run, pid } => Self {
                what: format!("run `{run}` {}", lost_to(pid)),
                why:
                    "its journal was replaced, removed or changed; this process writes nothing more"
                        .to_owned(),
                fix: format!("see where it stands with `ralph show {run}`"),
                code: ExitCode::Paused,
            },
        }
    }
}

/// The way out for a run of a newer ralph.
const UPGRADE_HINT: &str = "upgrade ralph";

/// How many runs an error lists before it only counts them.
const MAX_LISTED_RUNS: usize = 5;

impl From<FindError> for CliError {
    fn from(error: FindError) -> Self {
        match error {
            FindError::Store(error) => error.into(),
            FindError::None => Self::runtime(
                "there are no runs yet",
                "nothing has been started with this state directory",
                "start one with `ralph run`",
            ),
            FindError::Unknown(query) => Self::runtime(
                format!("there is no run `{query}`"),
                "no id starts with it, and no task has it as its id",
                "list them with `ralph runs`",
            ),
            FindError::Ambiguous { query, matches } => {
                let listed = matches[..matches.len().min(MAX_LISTED_RUNS)].join(", ");
                let more = match matches.len().saturating_sub(MAX_LISTED_RUNS) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                Self::runtime(
                    format!("`{query}` fits {} runs", matches.len()),
                    format!("{listed}{more}"),
                    "give more characters of the id",
                )
            }
        }
    }
}

impl From<ConfigFileError> for CliError {
    fn from(error: ConfigFileError) -> Self {
        let (path, why, fix) = match &error {
            ConfigFileError::Read { path, problem } => (path, problem.to_string(), problem.hint()),
            ConfigFileError::TooLarge { path, size, limit } => (
                path,
                format!("it has {size} bytes, at most {limit} are read"),
                "make it shorter",
            ),
            ConfigFileError::Invalid {
                path,
                line,
                column,
                why,
            } => (
                path,
                format!("line {line}, column {column}: {why}"),
                "correct that line",
            ),
            ConfigFileError::StoredPrices { path, why } => (
                path,
                why.clone(),
                "store prices again with `ralph models update-prices`, or remove the file",
            ),
        };
        Self::runtime(format!("cannot use `{}`", path.display()), why, fix)
    }
}

impl From<ProfileError> for CliError {
    fn from(error: ProfileError) -> Self {
        if let Some(why) = error.withheld {
            return Self::usage(
                format!("the model profile `{}` is not allowed", error.name),
                why,
                "see it with `ralph trust`, or choose another profile with `--profile`",
            );
        }
        if error.known.is_empty() {
            return Self::usage(
                error.to_string(),
                "no profiles are in force",
                "add it to `config/models.yaml`",
            );
        }
        let source = error.source_file.as_ref().map_or_else(
            || "the built-in ones are".to_owned(),
            |path| format!("`{}` has", path.display()),
        );
        Self::usage(
            error.to_string(),
            format!("{source} {}", error.known.join(", ")),
            "take one of these, or add it to `config/models.yaml`",
        )
    }
}

impl From<NoStateDirError> for CliError {
    fn from(_: NoStateDirError) -> Self {
        Self::runtime(
            "there is no place for the state directory",
            "neither RALPH_HOME nor HOME is set",
            "set RALPH_HOME to a directory of yours",
        )
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn an_error_is_always_printed_on_one_line() {
        let error = CliError::usage("a\nb", "\u{1b}[31mred", "c\u{202e}d");
        assert_eq!(error.to_string(), "ralph: a b — red — c�d");
    }

    fn journal_errors() -> [JournalError; 7] {
        [
            JournalError::Held {
                run: "r".into(),
                pid: Some(7),
            },
            JournalError::Lost {
                run: "r".into(),
                pid: Some(8),
            },
            JournalError::Lost {
                run: "r".into(),
                pid: None,
            },
            JournalError::Damaged {
                path: PathBuf::from("/j"),
                line: 3,
                why: "record 4 does not follow record 2".into(),
            },
            JournalError::Newer {
                run: "r".into(),
                format: 2,
                ralph: Some("9.1.0".into()),
            },
            JournalError::Newer {
                run: "r".into(),
                format: 2,
                ralph: None,
            },
            JournalError::Unknown {
                path: PathBuf::from("/j"),
                line: 3,
                what: "unknown event `x`".into(),
            },
        ]
    }

    #[test]
    fn errors_of_the_engine_say_what_to_do() {
        let ambiguous = |count: usize| FindError::Ambiguous {
            query: "26".into(),
            matches: (0..count).map(|n| format!("26-{n}")).collect(),
        };
        let full = StoreError {
            doing: "append to",
            path: PathBuf::from("/s/journal.jsonl"),
            source: std::io::ErrorKind::StorageFull.into(),
        };
        let errors: Vec<CliError> = vec![
            FindError::None.into(),
            FindError::Unknown("x".into()).into(),
            ambiguous(2).into(),
            ambiguous(7).into(),
            full.into(),
        ];
        let journal = journal_errors().map(CliError::from);
        let errors = errors.into_iter().chain(journal);
        let errors: Vec<CliError> = errors.chain([NoStateDirError.into()]).collect();
        let text: Vec<String> = errors.iter().map(ToString::to_string).collect();
        snapbox::assert_data_eq!(
            text.join("\n"),
            snapbox::str![[r"
ralph: there are no runs yet — nothing has been started with this state directory — start one with `ralph run`
ralph: there is no run `x` — no id starts with it, and no task has it as its id — list them with `ralph runs`
ralph: `26` fits 2 runs — 26-0, 26-1 — give more characters of the id
ralph: `26` fits 7 runs — 26-0, 26-1, 26-2, 26-3, 26-4 and 2 more — give more characters of the id
ralph: cannot append to `/s/journal.jsonl` — no storage space — free some space and run `ralph resume`; nothing that was recorded is lost
ralph: run `r` is taken — process 7 works on it — steer it with `ralph pause r` or `ralph stop r`
ralph: run `r` was taken over by pid 8 — its journal was replaced, removed or changed; this process writes nothing more — see where it stands with `ralph show r`
ralph: run `r` does not belong to this process any more — its journal was replaced, removed or changed; this process writes nothing more — see where it stands with `ralph show r`
ralph: journal `/j` is damaged at line 3 — record 4 does not follow record 2 — put back a copy of the file, or start the task again with `ralph run --new`
ralph: run `r` was written by ralph 9.1.0 (journal format 2), this is ralph [..] (format 1) — upgrade ralph
ralph: run `r` was written by a newer ralph (journal format 2), this is ralph [..] (format 1) — upgrade ralph
ralph: journal `/j` has an unknown event `x` at line 3 — a newer ralph wrote it, this is ralph [..] — upgrade ralph
ralph: there is no place for the state directory — neither RALPH_HOME nor HOME is set — set RALPH_HOME to a directory of yours
"]]
        );
    }
}
