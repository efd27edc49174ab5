//! Reads task files.

use std::path::{Path, PathBuf};

use ralph_core::lint::{self, LintFinding, LintSeverity};
use ralph_core::task::TaskFile;

use crate::app::App;
use crate::config::{RegularFileError, read_user_named};
use crate::error::{AppError, ErrorDetails, ErrorKind};

/// The number of bytes of a file that are read; the linter rejects a task file long before that.
const MAX_TASK_BYTES: u64 = 16 << 20;

/// Returns the start of a task file, which must be a regular file in its repository.
pub fn read_task_bytes(file: &Path, app: &App) -> Result<Vec<u8>, RegularFileError> {
    let directory = app.environment().working_dir();
    Ok(read_user_named(file, directory, MAX_TASK_BYTES)?.bytes)
}

/// Reads a task file. Returns its path with symbolic links resolved, and its content.
pub fn read_bytes(file: &Path, app: &App) -> Result<(PathBuf, Vec<u8>), AppError> {
    let path = app.environment().working_dir().join(file);
    let bytes = read_task_bytes(file, app).map_err(|error| {
        let fix = match &error {
            RegularFileError::Io(_) | RegularFileError::NotRegular { .. } => {
                "name another file, or create one with `ralph init`"
            }
            RegularFileError::OutsideRoot { .. } => error.hint(),
        };
        let what = format!("cannot read the task file `{}`", file.display());
        AppError::usage(what, error.to_string(), fix)
    })?;
    Ok((path.canonicalize().unwrap_or(path), bytes))
}

/// Reads and lints the task file. The error contains all findings that reject it.
pub fn read_task(file: &Path, app: &App) -> Result<(PathBuf, TaskFile), AppError> {
    let (path, bytes) = read_bytes(file, app)?;
    let (task, _warnings) = check_task_text(file, &bytes)?;
    Ok((path, task))
}

/// Lints the content of a task file, and returns it with the linter's warnings. The error contains all
/// findings that reject it.
pub fn check_task_text(
    file: &Path,
    bytes: &[u8],
) -> Result<(TaskFile, Vec<LintFinding>), AppError> {
    let report = lint::check(bytes);
    let usable = report.is_ok();
    match report.task {
        Some(task) if usable => Ok((task, report.findings)),
        _ => {
            let errors: Vec<_> = report
                .findings
                .into_iter()
                .filter(|f| f.severity == LintSeverity::Error)
                .collect();
            let (why, fix) = errors.first().map(describe_finding).unwrap_or_default();
            let fix = format!("{fix}; check with `ralph lint {}`", file.display());
            Err(rejected(file, (why, fix), errors))
        }
    }
}

/// Returns the position and the message of a finding, and its fix.
pub fn describe_finding(finding: &LintFinding) -> (String, String) {
    let location = match (finding.line, finding.column) {
        (Some(line), Some(column)) => format!("line {line}, column {column}: "),
        (Some(line), None) => format!("line {line}: "),
        (None, _) => String::new(),
    };
    let message = &finding.message;
    (format!("{location}{message}"), finding.fix.clone())
}

/// Returns the error of a task file that the linter rejects.
pub(crate) fn rejected(
    file: &Path,
    (why, fix): (String, String),
    findings: Vec<LintFinding>,
) -> AppError {
    let file = file.display().to_string();
    let what = format!("the task file `{file}` is rejected");
    AppError {
        details: Box::new(ErrorDetails::Findings { file, findings }),
        ..AppError::new(ErrorKind::TaskRejected, what, why, fix)
    }
}
