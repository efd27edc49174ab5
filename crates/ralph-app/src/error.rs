//! Errors as values: what failed, why, and what to do about it.

use std::fmt;

use ralph_core::lint::LintFinding;
use ralph_core::ports::ProviderProblem;
use ralph_core::secret::Redactor;
use ralph_engine::durable::StoreError;
use ralph_engine::journal::{JournalError, RALPH_VERSION, lost_to};
use ralph_engine::store::FindError;
use serde_json::json;

/// The kind of an error, from which a front end derives its exit code or status code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request itself is invalid: an argument, a setting or a file that the user named.
    Usage,
    /// The request was valid and failed.
    Runtime,
    /// The request was valid, but the state of the run does not permit it.
    Refused,
    /// The task file was rejected.
    TaskRejected,
    /// Another process took the run over.
    RunLost,
    /// A signal ended the operation.
    Interrupted,
}

/// Details that do not fit in the one line of an error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ErrorDetails {
    /// The error has no details.
    #[default]
    None,
    /// The linter's findings in a task file.
    Findings {
        /// The task file as the user named it.
        file: String,
        /// In the order of the file.
        findings: Vec<LintFinding>,
    },
    /// The last lines of an image build.
    BuildLog(Vec<String>),
    /// Further errors of the same request.
    Others(Vec<AppError>),
}

/// The reason why an operation failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppError {
    /// The failed operation, or the invalid thing.
    pub what: String,
    /// The cause; empty if `what` names it.
    pub why: String,
    /// The fix; empty if it is obvious.
    pub fix: String,
    pub kind: ErrorKind,
    /// Evidence besides the line; boxed, because most errors have none and every result has its size.
    pub details: Box<ErrorDetails>,
}

impl AppError {
    /// Creates the error of an invalid request.
    pub fn usage(what: impl Into<String>, why: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, what, why, fix)
    }

    /// Creates the error of an operation that failed.
    pub fn runtime(
        what: impl Into<String>,
        why: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self::new(ErrorKind::Runtime, what, why, fix)
    }

    /// Creates the error of an operation that the state of a run does not permit.
    pub fn refused(
        what: impl Into<String>,
        why: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self::new(ErrorKind::Refused, what, why, fix)
    }

    /// Creates an error of any kind.
    pub fn new(
        kind: ErrorKind,
        what: impl Into<String>,
        why: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            what: what.into(),
            why: why.into(),
            fix: fix.into(),
            kind,
            details: Box::default(),
        }
    }

    /// Combines all errors of a request into one, or returns `None` if there are none. An invalid
    /// request stays one, whatever else is missing; otherwise the first error determines the kind.
    pub fn combine(errors: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut errors = errors.into_iter();
        let mut first = errors.next()?;
        let others: Vec<Self> = errors.collect();
        if others.iter().any(|other| other.kind == ErrorKind::Usage) {
            first.kind = ErrorKind::Usage;
        }
        if !others.is_empty() {
            first.details = Box::new(ErrorDetails::Others(others));
        }
        Some(first)
    }

    /// Returns the failed operation and its cause in one text.
    pub fn cause(&self) -> String {
        if self.why.is_empty() {
            self.what.clone()
        } else {
            format!("{}: {}", self.what, self.why)
        }
    }

    /// Returns the error with secrets redacted: arguments and file names may contain one.
    #[must_use]
    pub fn redacted(self, redactor: &Redactor) -> Self {
        let clean = |text: String| redactor.redact(&text).into_owned();
        Self {
            what: clean(self.what),
            why: clean(self.why),
            fix: clean(self.fix),
            details: match *self.details {
                ErrorDetails::Others(others) => {
                    let others = others.into_iter().map(|other| other.redacted(redactor));
                    Box::new(ErrorDetails::Others(others.collect()))
                }
                details @ (ErrorDetails::None
                | ErrorDetails::Findings { .. }
                | ErrorDetails::BuildLog(_)) => Box::new(details),
            },
            kind: self.kind,
        }
    }

    /// Returns the parts that are not empty: what, why, fix.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        let parts = [&self.what, &self.why, &self.fix];
        parts
            .into_iter()
            .map(String::as_str)
            .filter(|part| !part.is_empty())
    }

    /// Returns the error as JSON for scripts.
    pub fn json(&self) -> serde_json::Value {
        let mut error = self.json_parts();
        if let ErrorDetails::Others(others) = &*self.details {
            error["others"] = others.iter().map(Self::json_parts).collect();
        }
        json!({ "error": error })
    }

    fn json_parts(&self) -> serde_json::Value {
        json!({"what": self.what, "why": self.why, "fix": self.fix})
    }
}

impl From<ProviderProblem> for AppError {
    fn from(problem: ProviderProblem) -> Self {
        Self::runtime(problem.what, "", problem.fix)
    }
}

impl fmt::Display for AppError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.parts().collect::<Vec<_>>().join(" — "))
    }
}

impl std::error::Error for AppError {}

impl From<StoreError> for AppError {
    fn from(error: StoreError) -> Self {
        let what = format!("cannot {} `{}`", error.doing, error.path.display());
        Self::runtime(what, error.source.to_string(), error.hint())
    }
}

impl From<JournalError> for AppError {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Store(error) => error.into(),
            JournalError::Empty { path } => Self::runtime(
                format!("journal `{}` contains no run", path.display()),
                "its first record does not create a run",
                "remove its directory, then start the task again with `ralph run`",
            ),
            JournalError::Damaged { path, line, why } => Self::runtime(
                format!("journal `{}` is damaged at line {line}", path.display()),
                why,
                "restore the file from a copy, or start the task again with `ralph run --new`",
            ),
            JournalError::Newer { .. } => Self::runtime(error.to_string(), "", UPGRADE_HINT),
            JournalError::Unknown { path, line, what } => Self::runtime(
                format!("journal `{}` has an {what} at line {line}", path.display()),
                format!("a newer ralph wrote it, this is ralph {RALPH_VERSION}"),
                UPGRADE_HINT,
            ),
            JournalError::Held { run, pid } => Self::refused(
                format!("run `{run}` is in use"),
                match pid {
                    Some(pid) => format!("process {pid} works on it"),
                    None => "another process works on it".to_owned(),
                },
                format!("steer it with `ralph pause {run}` or `ralph stop {run}`"),
            ),
            JournalError::Lost { run, pid } => Self::new(
                ErrorKind::RunLost,
                format!("run `{run}` {}", lost_to(pid)),
                "its journal was replaced, removed or changed; this process writes nothing more",
                format!("check its status with `ralph show {run}`"),
            ),
        }
    }
}

/// The fix for a run of a newer ralph.
const UPGRADE_HINT: &str = "upgrade ralph";

/// The number of runs that an error lists by name; further ones are only counted.
const MAX_LISTED_RUNS: usize = 5;

impl From<FindError> for AppError {
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
                "no run id starts with it, and no task has this id",
                "list them with `ralph runs`",
            ),
            FindError::Ambiguous { query, matches } => {
                let listed = matches[..matches.len().min(MAX_LISTED_RUNS)].join(", ");
                let more = match matches.len().saturating_sub(MAX_LISTED_RUNS) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                Self::runtime(
                    format!("`{query}` matches {} runs", matches.len()),
                    format!("{listed}{more}"),
                    "use more characters of the id",
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

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
        let errors: Vec<AppError> = vec![
            FindError::None.into(),
            FindError::Unknown("x".into()).into(),
            ambiguous(2).into(),
            ambiguous(7).into(),
            full.into(),
        ];
        let journal = journal_errors().map(AppError::from);
        let errors: Vec<AppError> = errors.into_iter().chain(journal).collect();
        let text: Vec<String> = errors.iter().map(ToString::to_string).collect();
        snapbox::assert_data_eq!(
            text.join("\n"),
            snapbox::str![[r"
there are no runs yet — nothing has been started with this state directory — start one with `ralph run`
there is no run `x` — no run id starts with it, and no task has this id — list them with `ralph runs`
`26` matches 2 runs — 26-0, 26-1 — use more characters of the id
`26` matches 7 runs — 26-0, 26-1, 26-2, 26-3, 26-4 and 2 more — use more characters of the id
cannot append to `/s/journal.jsonl` — no storage space — free some space and run `ralph resume`; nothing that was recorded is lost
run `r` is in use — process 7 works on it — steer it with `ralph pause r` or `ralph stop r`
run `r` was taken over by pid 8 — its journal was replaced, removed or changed; this process writes nothing more — check its status with `ralph show r`
run `r` no longer belongs to this process — its journal was replaced, removed or changed; this process writes nothing more — check its status with `ralph show r`
journal `/j` is damaged at line 3 — record 4 does not follow record 2 — restore the file from a copy, or start the task again with `ralph run --new`
run `r` was written by ralph 9.1.0 (journal format 2), this is ralph [..] (format 1) — upgrade ralph
run `r` was written by a newer ralph (journal format 2), this is ralph [..] (format 1) — upgrade ralph
journal `/j` has an unknown event `x` at line 3 — a newer ralph wrote it, this is ralph [..] — upgrade ralph
"]]
        );
    }
}
