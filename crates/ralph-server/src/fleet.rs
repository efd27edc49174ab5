//! The unfinished runs, followed from request to request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ralph_app::runs::FollowedRuns;

/// The unfinished runs; clones share them. Each journal is read once, then only its new records.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fleet {
    followed: Arc<Mutex<FollowedRuns>>,
}

impl Fleet {
    /// Locks the runs for one reading.
    pub(crate) fn lock(&self) -> MutexGuard<'_, FollowedRuns> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
