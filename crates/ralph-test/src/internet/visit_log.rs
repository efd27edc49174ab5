//! What arrived somewhere.

use std::sync::{Arc, Mutex, PoisonError};

/// What arrived somewhere, one line each, in its order. A clone is the same list.
#[derive(Debug, Clone, Default)]
pub struct VisitLog(Arc<Mutex<Vec<String>>>);

impl VisitLog {
    /// Returns everything so far.
    pub fn all(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(super) fn add(&self, line: String) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(line);
    }
}
