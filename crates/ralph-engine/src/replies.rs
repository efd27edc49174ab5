//! The replies that a run recorded, for replaying them.

use ralph_core::event::Event;

use crate::durable::StoreError;
use crate::journal::{self, JournalError};
pub use crate::steps::{Attempt, Responses};
use crate::store::RunDir;

/// Returns all recorded replies with the iteration they belong to, in order.
pub fn of(dir: &RunDir) -> Result<Vec<(u32, Attempt)>, JournalError> {
    let mut replies = Vec::new();
    for record in journal::read(&dir.journal())? {
        let Event::IterationFinished { iteration, .. } = record.event else {
            continue;
        };
        let path = dir.iteration(iteration).join("response.json");
        let text = std::fs::read(&path).map_err(StoreError::when("read", &path))?;
        let responses: Responses = serde_json::from_slice(&text).unwrap_or_default();
        replies.extend(
            responses
                .attempts
                .into_iter()
                .map(|attempt| (iteration, attempt)),
        );
    }
    Ok(replies)
}
