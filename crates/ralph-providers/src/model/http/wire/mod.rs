//! The four ways to talk: what is sent, and how an answer is read, whole or in events.

mod chat;
mod gemini;
mod messages;
mod responses;

use ralph_core::ports::ModelRequest;
use ralph_core::profile::Wire;
use serde_json::Value;

use super::answer::Answer;
use super::parameters::Parameters;
use super::refusal::Refusal;
use super::sse::Event;

/// Returns the output limit that is sent for a wire that needs one, where nothing else sets it.
pub(super) fn default_output_limit(wire: Wire) -> Option<u64> {
    match wire {
        Wire::Messages => Some(messages::OUTPUT_LIMIT),
        Wire::Chat | Wire::Responses | Wire::Gemini => None,
    }
}

/// Something that cannot be read as an answer.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The provider says that something went wrong.
    Refused(Refusal),
    /// It is not what this way to talk looks like.
    Unreadable(String),
}

/// Returns the body of a question.
pub(super) fn body(
    wire: Wire,
    model: &str,
    request: &ModelRequest,
    parameters: &Parameters,
) -> Value {
    match wire {
        Wire::Chat => chat::body(model, request, parameters),
        Wire::Responses => responses::body(model, request, parameters),
        Wire::Messages => messages::body(model, request, parameters),
        Wire::Gemini => gemini::body(request, parameters),
    }
}

/// Takes one event of a stream into the answer.
pub(super) fn read_event(wire: Wire, event: &Event, answer: &mut Answer) -> Result<(), Trouble> {
    if event.data.is_empty() {
        return Ok(());
    }
    if wire == Wire::Chat && event.data.trim() == "[DONE]" {
        answer.is_complete = true;
        return Ok(());
    }
    let value: Value = serde_json::from_str(&event.data)
        .map_err(|error| Trouble::Unreadable(format!("an event is no JSON: {error}")))?;
    let refused = event.name == "error" || value["type"] == "error";
    if let Some(error) = error_in(&value, refused) {
        return Err(Trouble::Refused(Refusal::in_answer(error)));
    }
    match wire {
        Wire::Chat => chat::read_event(&value, answer),
        Wire::Responses => return responses::read_event(&value, answer),
        Wire::Messages => messages::read_event(&value, answer),
        Wire::Gemini => gemini::read_event(&value, answer),
    }
    Ok(())
}

/// Reads a whole answer, which some servers send though a stream was asked for.
pub(super) fn read_whole(wire: Wire, body: &Value, answer: &mut Answer) -> Result<(), Trouble> {
    if let Some(error) = error_in(body.get(0).unwrap_or(body), false) {
        return Err(Trouble::Refused(Refusal::in_answer(error)));
    }
    match wire {
        Wire::Chat => chat::read_whole(body, answer),
        Wire::Responses => responses::read_whole(body, answer)?,
        Wire::Messages => messages::read_whole(body, answer),
        Wire::Gemini => gemini::read_whole(body, answer),
    }
    if answer.is_complete {
        Ok(())
    } else {
        Err(Trouble::Unreadable("there is no answer in it".into()))
    }
}

/// Returns the error that stands where an answer should.
fn error_in(value: &Value, is_error: bool) -> Option<&Value> {
    let error = value.get("error").filter(|error| !error.is_null());
    error.or_else(|| is_error.then_some(value))
}
