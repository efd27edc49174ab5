//! The encoding shared by all protocols: events and the two forms of a response.

use serde_json::Value;

use super::scenario::{FakeUpstreamApi, ScenarioStep};
use super::{chat, messages, responses};

/// The parts of a request that the response repeats.
pub(super) struct FakeRequestInfo<'a> {
    /// Counted from 0.
    pub(super) number: usize,
    pub(super) model: &'a str,
}

impl FakeUpstreamApi {
    /// Returns the protocol of a path.
    pub(super) fn from_path(path: &str) -> Option<Self> {
        match path {
            "/v1/messages" => Some(Self::Messages),
            "/v1/responses" => Some(Self::Responses),
            "/v1/chat/completions" => Some(Self::Chat),
            _ => None,
        }
    }

    /// Returns a response as events, without the last ones if it is cut.
    pub(super) fn events(self, step: &ScenarioStep, info: &FakeRequestInfo<'_>) -> Vec<String> {
        match self {
            Self::Messages => messages::events(step, info),
            Self::Responses => responses::events(step, info),
            Self::Chat => chat::events(step, info),
        }
    }

    /// Returns a response as one object.
    pub(super) fn object(self, step: &ScenarioStep, info: &FakeRequestInfo<'_>) -> Value {
        match self {
            Self::Messages => messages::object(step, info),
            Self::Responses => responses::object(step, info),
            Self::Chat => chat::object(step, info),
        }
    }

    /// Returns an error object.
    pub(super) fn error(self, status: u16, message: &str) -> Value {
        match self {
            Self::Messages => messages::error(status, message),
            Self::Responses | Self::Chat => responses::error(status, message),
        }
    }
}

/// Returns an event whose name is also its `type`.
pub(super) fn typed_event(data: &Value) -> String {
    let name = data["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}
