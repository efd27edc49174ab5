//! `response.json`: every reply of an iteration, redacted.

use ralph_core::id::Digest;
use ralph_core::ports::{FinishReason, TokenUsage};
use serde::{Deserialize, Serialize};

use crate::durable;
use crate::error::RunError;
use crate::recorder::Recorder;
use crate::redaction;

/// The replies of an iteration, in order.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Responses {
    pub attempts: Vec<Attempt>,
}

/// One reply.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Attempt {
    /// The number in the iteration.
    pub attempt: u32,
    /// The requested model.
    pub model: String,
    /// The model that answered, as named by the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// Unredacted in memory, redacted on disk.
    pub reply: String,
    pub finish: FinishReason,
    pub usage: TokenUsage,
    /// Why the reply was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

pub(super) fn write_responses(recorder: &Recorder, responses: &Responses) -> Result<(), RunError> {
    let path = recorder.open_iteration_file("response.json");
    let text = redaction::to_pretty(&recorder.redactor, responses, &path)?;
    Ok(durable::write(&path, &text)?)
}

/// Writes a list without replies if the iteration ends before the first one, such as with a lost
/// sandbox after a crash.
pub(super) fn write_empty_responses_if_missing(recorder: &Recorder) -> Result<(), RunError> {
    let path = recorder.open_iteration_file("response.json");
    if durable::read_if_present(&path)?.is_none() {
        write_responses(recorder, &Responses::default())?;
    }
    Ok(())
}

/// Reads the replies of the open iteration. Only replies in the journal count: the model is asked
/// again for one that was not charged.
pub(super) fn read_responses(recorder: &mut Recorder) -> Result<Responses, RunError> {
    let path = recorder.open_iteration_file("response.json");
    let Some(text) = durable::read_if_present(&path)? else {
        return Ok(Responses::default());
    };
    let mut responses: Responses = match serde_json::from_slice(&text) {
        Ok(responses) => responses,
        Err(error) => {
            recorder.log_error(&format!(
                "`response.json` is damaged, the model is asked again: {error}"
            ))?;
            Responses::default()
        }
    };
    let open = recorder.state().open.as_ref();
    responses
        .attempts
        .truncate(open.map_or(0, |open| open.replies));
    Ok(responses)
}

/// Returns the last reply from before a restart, unless it was rejected.
///
/// A reply that was redacted on its way to the disk has another digest and is not returned: its
/// placeholders must not be performed.
pub(super) fn stored_reply(recorder: &Recorder, responses: &Responses) -> Option<Attempt> {
    let expected = recorder.state().open.as_ref()?.response.clone()?;
    let last = responses.attempts.last()?;
    let same = Digest::compute(last.reply.as_bytes()) == expected;
    (same && last.error.is_none()).then(|| last.clone())
}
