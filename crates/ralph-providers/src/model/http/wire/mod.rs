//! The four wire APIs: request bodies and reply parsing, complete or streamed.

mod chat;
mod gemini;
mod messages;
mod responses;

use ralph_core::ports::ModelRequest;
use ralph_core::profile::WireApi;
use serde_json::Value;

use super::parameters::RequestParameters;
use super::partial_reply::PartialReply;
use super::rejection::ProviderRejection;
use super::sse::SseEvent;

/// Returns the default output limit of APIs that require one.
pub(super) fn default_output_limit(wire: WireApi) -> Option<u64> {
    match wire {
        WireApi::Messages => Some(messages::DEFAULT_OUTPUT_LIMIT),
        WireApi::Chat | WireApi::Responses | WireApi::Gemini => None,
    }
}

/// Why a reply cannot be read.
#[derive(Debug)]
pub(super) enum ReplyReadError {
    /// The provider reported an error.
    Rejected(ProviderRejection),
    /// The reply does not match the API.
    Unreadable(String),
}

/// Returns the request body.
pub(super) fn body(
    wire: WireApi,
    model: &str,
    request: &ModelRequest,
    parameters: &RequestParameters,
) -> Value {
    match wire {
        WireApi::Chat => chat::body(model, request, parameters),
        WireApi::Responses => responses::body(model, request, parameters),
        WireApi::Messages => messages::body(model, request, parameters),
        WireApi::Gemini => gemini::body(request, parameters),
    }
}

/// Adds one stream event to the reply.
pub(super) fn read_event(
    wire: WireApi,
    event: &SseEvent,
    reply: &mut PartialReply,
) -> Result<(), ReplyReadError> {
    if event.data.is_empty() {
        return Ok(());
    }
    if wire == WireApi::Chat && event.data.trim() == "[DONE]" {
        reply.is_complete = true;
        return Ok(());
    }
    let value: Value = serde_json::from_str(&event.data).map_err(|error| {
        ReplyReadError::Unreadable(format!("an event is not valid JSON: {error}"))
    })?;
    let is_error_event = event.name == "error" || value["type"] == "error";
    if let Some(error) = error_in(&value, is_error_event) {
        return Err(ReplyReadError::Rejected(
            ProviderRejection::from_error_value(error),
        ));
    }
    match wire {
        WireApi::Chat => chat::read_event(&value, reply),
        WireApi::Responses => return responses::read_event(&value, reply),
        WireApi::Messages => messages::read_event(&value, reply),
        WireApi::Gemini => gemini::read_event(&value, reply),
    }
    Ok(())
}

/// Reads a complete reply, which some servers send although a stream was requested.
pub(super) fn read_whole(
    wire: WireApi,
    body: &Value,
    reply: &mut PartialReply,
) -> Result<(), ReplyReadError> {
    if let Some(error) = error_in(body.get(0).unwrap_or(body), false) {
        return Err(ReplyReadError::Rejected(
            ProviderRejection::from_error_value(error),
        ));
    }
    match wire {
        WireApi::Chat => chat::read_whole(body, reply),
        WireApi::Responses => responses::read_whole(body, reply)?,
        WireApi::Messages => messages::read_whole(body, reply),
        WireApi::Gemini => gemini::read_whole(body, reply),
    }
    if reply.is_complete {
        Ok(())
    } else {
        Err(ReplyReadError::Unreadable("it contains no reply".into()))
    }
}

/// Returns the error that a provider sent instead of a reply.
fn error_in(value: &Value, is_error: bool) -> Option<&Value> {
    let error = value.get("error").filter(|error| !error.is_null());
    error.or_else(|| is_error.then_some(value))
}
