//! Reports git processes to the diagnostics log.

use std::fmt;
use std::time::Instant;

use super::error_line::most_relevant_line;

/// A git process whose end is logged.
pub(super) struct GitCall {
    /// `host` or `sandbox`.
    location: &'static str,
    arguments: String,
    started: Instant,
}

impl GitCall {
    pub(super) fn new(location: &'static str, arguments: String) -> Self {
        Self {
            location,
            arguments,
            started: Instant::now(),
        }
    }

    /// Logs how the process ended. Git answers many questions by its exit code alone, so only a
    /// failure with a message is a warning.
    pub(super) fn log_exit(&self, code: Option<i32>, stderr: &[u8]) {
        let ms = self.started.elapsed().as_millis();
        let (location, arguments) = (self.location, self.arguments.as_str());
        let stderr = String::from_utf8_lossy(stderr);
        match most_relevant_line(&stderr) {
            Some(message) if code != Some(0) => {
                tracing::warn!(
                    location,
                    arguments,
                    code,
                    ms,
                    stderr = message,
                    "git failed"
                );
            }
            Some(_) | None => tracing::debug!(location, arguments, code, ms, "git ended"),
        }
    }

    /// Logs that the process could not be started or was ended.
    pub(super) fn log_error(&self, error: &impl fmt::Display) {
        let ms = self.started.elapsed().as_millis();
        let (location, arguments) = (self.location, self.arguments.as_str());
        tracing::warn!(location, arguments, ms, %error, "git failed");
    }
}
