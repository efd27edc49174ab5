//! A run that can be driven.

use ralph_core::run::RunStatus;
use ralph_engine::error::RunError;
use ralph_engine::journal::{Journal, JournalError};
use ralph_engine::run::Services;
use ralph_engine::run_thread::spawn_run;
use ralph_engine::store::RunDir;
use tokio::sync::watch;

use crate::error::AppError;

/// A run whose journal is open and whose services are connected.
pub struct ReadyRun {
    pub(crate) dir: RunDir,
    pub(crate) journal: Journal,
    pub(crate) services: Services,
}

impl ReadyRun {
    /// Returns the run's directory.
    pub fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// Returns the run's journal, which a front end can follow.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Drives the run until it ends, waits for the user or is interrupted.
    pub async fn drive(self, interrupted: watch::Receiver<bool>) -> Result<RunStatus, AppError> {
        let dir = self.dir.clone();
        let ended = match spawn_run(self.dir, self.journal, self.services, interrupted) {
            Ok(thread) => thread.join().await,
            Err(error) => Err(error),
        };
        ended.map_err(|error| run_failed(&dir, error))
    }
}

fn run_failed(dir: &RunDir, error: RunError) -> AppError {
    if let RunError::Journal(lost @ JournalError::Lost { .. }) = error {
        return lost.into();
    }
    let name = dir.root().file_name();
    let run = name.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    AppError::runtime(
        format!("run `{run}` cannot go on"),
        error.to_string(),
        error.hint(),
    )
}
