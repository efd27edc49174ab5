//! Why the index cannot be used, and what follows from it.

use ralph_app::AppError;
use ralph_engine::durable::StoreError;
use sqlx::migrate::MigrateError;

/// The result codes of SQLite that matter here.
mod code {
    pub(super) const ERROR: i32 = 1;
    pub(super) const BUSY: i32 = 5;
    pub(super) const LOCKED: i32 = 6;
    pub(super) const CORRUPT: i32 = 11;
    pub(super) const CONSTRAINT: i32 = 19;
    pub(super) const NOT_A_DATABASE: i32 = 26;
}

/// Why the index cannot be used. Nothing depends on it: the files of the runs have all information.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IndexError {
    /// An operation of the database failed.
    #[error("cannot {doing} the index: {source}")]
    Database {
        doing: &'static str,
        source: sqlx::Error,
    },
    /// The tables cannot be created or brought up to date.
    #[error("cannot create the tables of the index: {0}")]
    Migration(#[from] MigrateError),
    /// The check of the database found damage.
    #[error("the index is damaged: {0}")]
    Damaged(String),
    /// The file of the database cannot be accessed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The state directory cannot be opened.
    #[error("{0}")]
    StateDirectory(Box<AppError>),
    /// A task that read the runs ended.
    #[error("cannot read the runs: {0}")]
    Interrupted(String),
    /// Another process updates the index.
    #[error("another process updates the index")]
    Maintained,
    /// It has not been opened yet, or could not be opened.
    #[error("the index is not open")]
    NotOpen,
}

/// What follows from an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexFault {
    /// Another process uses the database; the same operation succeeds later.
    Busy,
    /// The content is unusable and must be created again.
    Broken,
    /// The file cannot be accessed: its directory, its permissions or the disk.
    Unavailable,
}

impl IndexError {
    /// Returns a closure for `map_err` that adds the operation, as a verb.
    pub(super) fn when(doing: &'static str) -> impl FnOnce(sqlx::Error) -> Self {
        move |source| Self::Database { doing, source }
    }

    /// Returns what follows from the error.
    pub(super) fn fault(&self) -> IndexFault {
        match self {
            Self::Database { source, .. } | Self::Migration(MigrateError::Execute(source)) => {
                database_fault(source)
            }
            Self::Migration(MigrateError::ExecuteMigration(source, _)) => database_fault(source),
            // Another version of ralph created the tables.
            Self::Migration(_) | Self::Damaged(_) => IndexFault::Broken,
            Self::Maintained | Self::NotOpen => IndexFault::Busy,
            Self::Store(_) | Self::StateDirectory(_) | Self::Interrupted(_) => {
                IndexFault::Unavailable
            }
        }
    }
}

fn database_fault(error: &sqlx::Error) -> IndexFault {
    if let sqlx::Error::Database(error) = error {
        // The low byte is the primary code.
        let number = error
            .code()
            .map_or(Ok(0), |code| code.parse::<i32>())
            .unwrap_or(0);
        return match number & 0xff {
            code::BUSY | code::LOCKED => IndexFault::Busy,
            code::ERROR | code::CORRUPT | code::CONSTRAINT | code::NOT_A_DATABASE => {
                IndexFault::Broken
            }
            _ => IndexFault::Unavailable,
        };
    }
    if matches!(error, sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed) {
        return IndexFault::Busy;
    }
    let is_other_content = matches!(
        error,
        sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::ColumnNotFound(_)
            | sqlx::Error::Decode(_)
            | sqlx::Error::RowNotFound
            | sqlx::Error::TypeNotFound { .. }
    );
    if is_other_content {
        IndexFault::Broken
    } else {
        IndexFault::Unavailable
    }
}
