//! `ralph reindex`: what a server does at its start.

use std::path::PathBuf;
use std::sync::Arc;

use ralph_app::{App, AppError};
use serde::Serialize;

use super::index_error::{IndexError, IndexFault};
use super::location::IndexLocation;
use super::maintenance::Maintenance;
use super::run_index::RunIndex;

/// What was done to bring the index up to date.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReindexReport {
    pub database: PathBuf,
    /// The number of runs in the index.
    pub runs: u64,
    /// The number of runs that were new or had changed.
    pub updated: u64,
    /// The number of runs whose directory is gone.
    pub removed: u64,
    /// Whether the index was missing or damaged, and is a new one.
    pub created: bool,
}

/// Brings the index up to date with the files of all runs, while no server does so.
pub async fn reindex(app: App) -> Result<ReindexReport, AppError> {
    let index = RunIndex::new(Arc::new(app))?;
    let IndexLocation::File(database) = index.location().clone() else {
        return Err(AppError::usage(
            "there is no index to update",
            "`RALPH_DB_URL` names a database in memory",
            "unset it, or use `sqlite:///absolute/path`",
        ));
    };
    let (counts, runs) = Maintenance::new(index)
        .run_once()
        .await
        .map_err(|error| cannot_update(&error))?;
    Ok(ReindexReport {
        database,
        runs,
        updated: counts.updated,
        removed: counts.removed,
        created: counts.created > 0,
    })
}

fn cannot_update(error: &IndexError) -> AppError {
    let fix = match (error, error.fault()) {
        (IndexError::Maintained, _) => {
            "a running server keeps it up to date; if its file is removed, the server builds it again"
        }
        (_, IndexFault::Busy) => "end the program that uses the database, then try again",
        (_, IndexFault::Broken | IndexFault::Unavailable) => {
            "check the directory of the database and its permissions, then try again"
        }
    };
    AppError::runtime("cannot update the index", error.to_string(), fix)
}
