//! Anthropic's Messages API.

use ralph_core::ports::{FinishReason, ModelRequest};
use ralph_core::profile::ReplyFormat;
use serde_json::{Value, json};

use super::super::parameters::RequestParameters;
use super::super::partial_reply::{PartialReply, parse_tokens};

/// The default limit: this API requires one.
pub(super) const DEFAULT_OUTPUT_LIMIT: u64 = 8192;

pub(super) fn body(model: &str, request: &ModelRequest, parameters: &RequestParameters) -> Value {
    let limit = parameters.output_limit.unwrap_or(DEFAULT_OUTPUT_LIMIT);
    let mut body = json!({
        "model": model,
        "max_tokens": limit,
        "system": [{"type": "text", "text": request.system}],
        "messages": [{"role": "user", "content": request.user}],
        "stream": true,
    });
    if let Some(temperature) = parameters.temperature {
        body["temperature"] = json!(temperature);
    }
    if parameters.format == ReplyFormat::Schema {
        let format = json!({"type": "json_schema", "schema": request.schema});
        body["output_config"] = json!({ "format": format });
    }
    body
}

pub(super) fn read_event(value: &Value, reply: &mut PartialReply) {
    match value["type"].as_str().unwrap_or_default() {
        "message_start" => {
            let message = &value["message"];
            reply.model = message["model"].as_str().map(str::to_owned);
            read_usage(&message["usage"], reply);
        }
        // A text block may start with some text; reasoning is not part of the reply.
        "content_block_start" if value["content_block"]["type"] == "text" => {
            let text = value["content_block"]["text"].as_str();
            reply.push_text(text.unwrap_or_default());
        }
        "content_block_delta" => {
            reply.push_text(value["delta"]["text"].as_str().unwrap_or_default());
        }
        "message_delta" => {
            read_stop(&value["delta"]["stop_reason"], reply);
            read_usage(&value["usage"], reply);
        }
        "message_stop" => reply.is_complete = true,
        _ => {}
    }
}

pub(super) fn read_whole(value: &Value, reply: &mut PartialReply) {
    let Some(blocks) = value["content"].as_array() else {
        return;
    };
    for block in blocks.iter().filter(|block| block["type"] == "text") {
        reply.push_text(block["text"].as_str().unwrap_or_default());
    }
    reply.model = value["model"].as_str().map(str::to_owned);
    read_stop(&value["stop_reason"], reply);
    read_usage(&value["usage"], reply);
    reply.is_complete = true;
}

fn read_stop(reason: &Value, reply: &mut PartialReply) {
    if let Some(reason) = reason.as_str() {
        reply.finish = Some(match reason {
            "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
            "refusal" => FinishReason::Refused,
            _ => FinishReason::Complete,
        });
    }
}

/// This API counts cached tokens separately from the input; ralph includes them.
fn read_usage(usage: &Value, reply: &mut PartialReply) {
    let counted = &mut reply.reported;
    if let Some(uncached) = parse_tokens(&usage["input_tokens"]) {
        counted.cache_read = parse_tokens(&usage["cache_read_input_tokens"]).unwrap_or(0);
        counted.cache_write = parse_tokens(&usage["cache_creation_input_tokens"]).unwrap_or(0);
        let for_an_hour = &usage["cache_creation"]["ephemeral_1h_input_tokens"];
        // An event that repeats the counts may omit this one.
        counted.cache_write_1h = parse_tokens(for_an_hour).unwrap_or(counted.cache_write_1h);
        counted.input = Some(uncached + counted.cache_read + counted.cache_write);
    }
    counted.output = parse_tokens(&usage["output_tokens"]).or(counted.output);
}
