//! The replies that a run recorded, for replaying them.

use std::collections::BTreeMap;

use ralph_core::event::{Event, IterationEvent, ModelEvent};
use ralph_core::id::Digest;

use crate::durable::StoreError;
use crate::journal::{self, JournalError};
pub use crate::steps::{Attempt, Responses};
use crate::store::RunDir;

/// A reply that a run recorded.
#[derive(Debug)]
pub struct StoredReply {
    pub iteration: u32,
    pub attempt: Attempt,
    /// Whether the stored reply is unredacted. A redacted one must not be performed.
    pub is_original: bool,
}

/// Returns all recorded replies, in order.
pub fn load(dir: &RunDir) -> Result<Vec<StoredReply>, JournalError> {
    let mut replies = Vec::new();
    let mut originals: BTreeMap<u32, Digest> = BTreeMap::new();
    for record in journal::read(&dir.journal())? {
        if let Event::Model(ModelEvent::ModelReplied {
            attempt, response, ..
        }) = record.event
        {
            originals.insert(attempt, response);
            continue;
        }
        let Event::Iteration(IterationEvent::IterationFinished { iteration, .. }) = record.event
        else {
            continue;
        };
        let path = dir.iteration(iteration).join("response.json");
        let text = std::fs::read(&path).map_err(StoreError::when("read", &path))?;
        let responses: Responses = serde_json::from_slice(&text).unwrap_or_else(|error| {
            // The file of an agent iteration has another format.
            tracing::debug!("`{}` has no replies: {error}", path.display());
            Responses::default()
        });
        let originals = std::mem::take(&mut originals);
        replies.extend(responses.attempts.into_iter().map(|attempt| {
            let stored = Digest::compute(attempt.reply.as_bytes());
            StoredReply {
                iteration,
                is_original: originals.get(&attempt.attempt) == Some(&stored),
                attempt,
            }
        }));
    }
    Ok(replies)
}
