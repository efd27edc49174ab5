//! The Anthropic messages format.

use serde_json::{Value, json};

use super::scenario::{ScenarioReply, ScenarioStep};
use super::wire::{FakeRequestInfo, typed_event};

pub(super) fn events(step: &ScenarioStep, info: &FakeRequestInfo<'_>) -> Vec<String> {
    let mut start = object(step, info);
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["usage"]["output_tokens"] = json!(1);
    let mut events = vec![
        json!({"type": "message_start", "message": start}),
        json!({"type": "ping"}),
    ];
    let (block, delta) = match &step.reply {
        ScenarioReply::Text(text) | ScenarioReply::Cut(text) | ScenarioReply::Fail { text, .. } => {
            (
                json!({"type": "text", "text": ""}),
                json!({"type": "text_delta", "text": text}),
            )
        }
        ScenarioReply::Tool { name, input } => (
            json!({"type": "tool_use", "id": tool_id(info), "name": name, "input": {}}),
            json!({"type": "input_json_delta", "partial_json": input.to_string()}),
        ),
        ScenarioReply::Error { .. } | ScenarioReply::Body { .. } => return Vec::new(),
    };
    events.push(json!({"type": "content_block_start", "index": 0, "content_block": block}));
    events.push(json!({"type": "content_block_delta", "index": 0, "delta": delta}));
    if let ScenarioReply::Fail {
        status, message, ..
    } = &step.reply
    {
        events.push(error(*status, message));
    } else if !matches!(step.reply, ScenarioReply::Cut(_)) {
        events.push(json!({"type": "content_block_stop", "index": 0}));
        events.push(json!({
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason(step), "stop_sequence": null},
            "usage": {"output_tokens": step.usage.output_tokens},
        }));
        events.push(json!({"type": "message_stop"}));
    }
    events.iter().map(typed_event).collect()
}

pub(super) fn object(step: &ScenarioStep, info: &FakeRequestInfo<'_>) -> Value {
    let content = match &step.reply {
        ScenarioReply::Text(text) | ScenarioReply::Cut(text) | ScenarioReply::Fail { text, .. } => {
            json!({"type": "text", "text": text})
        }
        ScenarioReply::Tool { name, input } => {
            json!({"type": "tool_use", "id": tool_id(info), "name": name, "input": input})
        }
        ScenarioReply::Error { .. } | ScenarioReply::Body { .. } => Value::Null,
    };
    let usage = step.usage;
    let cached = usage.cache_read_tokens + usage.cache_write_tokens;
    json!({
        "id": format!("msg_fake{:04}", info.number),
        "type": "message",
        "role": "assistant",
        "model": info.model,
        "content": [content],
        "stop_reason": stop_reason(step),
        "stop_sequence": null,
        "usage": {
            "input_tokens": usage.input_tokens.saturating_sub(cached),
            "cache_creation_input_tokens": usage.cache_write_tokens,
            "cache_read_input_tokens": usage.cache_read_tokens,
            "output_tokens": usage.output_tokens,
        },
    })
}

pub(super) fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

fn stop_reason(step: &ScenarioStep) -> &'static str {
    if matches!(step.reply, ScenarioReply::Tool { .. }) {
        "tool_use"
    } else {
        "end_turn"
    }
}

fn tool_id(info: &FakeRequestInfo<'_>) -> String {
    format!("toolu_fake{:04}", info.number)
}
