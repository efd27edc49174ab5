//! A log of requests to a fake host.

use std::sync::{Arc, Mutex, PoisonError};

/// The recorded visits, one line each, in order. Clones share the same log.
#[derive(Debug, Clone, Default)]
pub struct VisitLog(Arc<Mutex<Vec<String>>>);

impl VisitLog {
    /// Returns all visits so far.
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
