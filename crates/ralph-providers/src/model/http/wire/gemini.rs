//! Gemini's native API.

use ralph_core::ports::{FinishReason, ModelRequest};
use ralph_core::profile::ReplyFormat;
use serde_json::{Value, json};

use super::super::parameters::RequestParameters;
use super::super::partial_reply::{PartialReply, parse_tokens};

pub(super) fn body(request: &ModelRequest, parameters: &RequestParameters) -> Value {
    let mut config = json!({});
    if let Some(limit) = parameters.output_limit {
        config["maxOutputTokens"] = json!(limit);
    }
    if let Some(temperature) = parameters.temperature {
        config["temperature"] = json!(temperature);
    }
    match parameters.format {
        ReplyFormat::Schema => {
            config["responseMimeType"] = json!("application/json");
            config["responseJsonSchema"] = json!(request.schema);
        }
        ReplyFormat::Json => config["responseMimeType"] = json!("application/json"),
        ReplyFormat::Text => {}
    }
    json!({
        "systemInstruction": {"parts": [{"text": request.system}]},
        "contents": [{"role": "user", "parts": [{"text": request.user}]}],
        "generationConfig": config,
    })
}

/// The finish reason is the only end marker of a stream.
pub(super) fn read_event(value: &Value, reply: &mut PartialReply) {
    if let Some(model) = value["modelVersion"].as_str() {
        reply.model = Some(model.to_owned());
    }
    let candidate = &value["candidates"][0];
    let parts = candidate["content"]["parts"].as_array();
    for part in parts.map_or(&[][..], Vec::as_slice) {
        if part["thought"] != true {
            reply.push_text(part["text"].as_str().unwrap_or_default());
        }
    }
    if let Some(reason) = candidate["finishReason"].as_str() {
        reply.is_complete = true;
        reply.finish = Some(match reason {
            "STOP" | "FINISH_REASON_UNSPECIFIED" => FinishReason::Complete,
            "MAX_TOKENS" => FinishReason::Length,
            _ => FinishReason::Refused,
        });
    }
    if value["promptFeedback"]["blockReason"].is_string() {
        reply.is_complete = true;
        reply.finish = Some(FinishReason::Refused);
    }
    read_usage(&value["usageMetadata"], reply);
}

pub(super) fn read_whole(value: &Value, reply: &mut PartialReply) {
    match value.as_array() {
        Some(pieces) => pieces.iter().for_each(|piece| read_event(piece, reply)),
        None => read_event(value, reply),
    }
}

fn read_usage(usage: &Value, reply: &mut PartialReply) {
    let counted = &mut reply.reported;
    counted.input = parse_tokens(&usage["promptTokenCount"]).or(counted.input);
    let thoughts = parse_tokens(&usage["thoughtsTokenCount"]);
    let written = parse_tokens(&usage["candidatesTokenCount"]);
    if thoughts.is_some() || written.is_some() {
        counted.output = Some(thoughts.unwrap_or(0) + written.unwrap_or(0));
        counted.reasoning = thoughts.unwrap_or(0);
    }
    counted.cache_read =
        parse_tokens(&usage["cachedContentTokenCount"]).unwrap_or(counted.cache_read);
}
