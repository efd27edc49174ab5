//! The side of an operation that works: it reports progress and notices a cancellation.

use ralph_app::AppError;
use ralph_app::checks::{CheckEntry, CheckOutcome, CheckSink, CheckStatus};
use ralph_app::image::ImageProgress;
use serde::Serialize;
use tokio::sync::watch;

use super::registry::Operations;

/// The most lines of progress that are remembered.
const MAX_LINES: usize = 200;

/// The longest remembered line, in bytes.
const MAX_LINE_BYTES: usize = 2048;

/// The most notes of an operation.
const MAX_NOTES: usize = 100;

/// Reports the progress of an operation.
#[derive(Debug)]
pub(crate) struct OperationHandle {
    pub(super) id: String,
    pub(super) operations: Operations,
    pub(super) cancelled: watch::Receiver<bool>,
}

impl OperationHandle {
    /// Returns a receiver that becomes true when the operation is cancelled.
    pub(crate) fn cancelled(&self) -> watch::Receiver<bool> {
        self.cancelled.clone()
    }

    /// Adds a line of progress; the oldest ones are forgotten.
    pub(crate) fn log(&self, line: &str) {
        let redactor = self.operations.redactor();
        let mut line = redactor.redact(line).into_owned();
        line.truncate(line.floor_char_boundary(MAX_LINE_BYTES));
        self.operations.update(&self.id, |operation| {
            if operation.log.len() == MAX_LINES {
                operation.log.remove(0);
            }
            operation.log.push(line);
        });
    }

    /// Adds a step of building or pulling an image.
    pub(crate) fn log_image(&self, progress: ImageProgress) {
        match progress {
            ImageProgress::Started(text) | ImageProgress::Output(text) => self.log(&text),
            ImageProgress::Step {
                number,
                total,
                instruction,
            } => self.log(&format!("step {number} of {total}: {instruction}")),
            ImageProgress::Warning(text) => self.log(&format!("warning: {text}")),
            // Each download reports many times per second.
            ImageProgress::Transfer { .. } => {}
        }
    }

    /// Sets the result.
    pub(crate) fn set_result(&self, result: &impl Serialize) -> Result<(), AppError> {
        let result = serde_json::to_value(result).map_err(|error| {
            AppError::runtime("cannot describe the result", error.to_string(), "")
        })?;
        self.operations
            .update(&self.id, |operation| operation.result = Some(result));
        Ok(())
    }

    /// Returns an error if a check failed or did not run.
    pub(crate) fn require_passed_checks(&self) -> Result<(), AppError> {
        let mut open = 0;
        self.operations.update(&self.id, |operation| {
            let checks = operation.checks.iter();
            open = checks
                .filter(|check| check.status != CheckStatus::Pass)
                .count();
        });
        if open == 0 {
            return Ok(());
        }
        Err(AppError::runtime(
            "not all checks passed",
            format!("{open} failed or did not run"),
            "follow the `fix` of each",
        ))
    }
}

impl CheckSink for OperationHandle {
    fn add(&mut self, name: &'static str, outcome: CheckOutcome) -> Result<(), AppError> {
        let outcome = outcome.redacted(&self.operations.redactor());
        let entry = CheckEntry::new(name, &outcome);
        self.operations
            .update(&self.id, |operation| operation.checks.push(entry));
        Ok(())
    }

    fn note(&mut self, text: String) -> Result<(), AppError> {
        let text = self.operations.redactor().redact(&text).into_owned();
        self.operations.update(&self.id, |operation| {
            if operation.notes.len() < MAX_NOTES {
                operation.notes.push(text);
            }
        });
        Ok(())
    }
}
