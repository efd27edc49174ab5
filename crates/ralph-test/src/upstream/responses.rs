//! The OpenAI responses format.

use serde_json::{Value, json};

use super::scenario::{ScenarioReply, ScenarioStep};
use super::wire::{FakeRequestInfo, typed_event};

pub(super) fn events(step: &ScenarioStep, info: &FakeRequestInfo<'_>) -> Vec<String> {
    let done = object(step, info);
    let mut start = done.clone();
    start["status"] = json!("in_progress");
    start["output"] = json!([]);
    start["usage"] = Value::Null;
    let item = done["output"][0].clone();
    let mut item_start = item.clone();
    item_start["status"] = json!("in_progress");
    let mut events = vec![
        json!({"type": "response.created", "response": start.clone()}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": item_start}),
    ];
    match &step.reply {
        ScenarioReply::Text(text) | ScenarioReply::Cut(text) | ScenarioReply::Fail { text, .. } => {
            events.push(json!({
                "type": "response.output_text.delta",
                "item_id": item["id"], "output_index": 0, "content_index": 0, "delta": text,
            }));
        }
        ScenarioReply::Tool { input, .. } => events.push(json!({
            "type": "response.function_call_arguments.delta",
            "item_id": item["id"], "output_index": 0, "delta": input.to_string(),
        })),
        ScenarioReply::Error { .. } | ScenarioReply::Body { .. } => return Vec::new(),
    }
    if let ScenarioReply::Fail {
        status, message, ..
    } = &step.reply
    {
        let mut failed = start;
        failed["status"] = json!("failed");
        failed["error"] = error(*status, message)["error"].take();
        events.push(json!({"type": "response.failed", "response": failed}));
    } else if !matches!(step.reply, ScenarioReply::Cut(_)) {
        events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item}));
        events.push(json!({"type": "response.completed", "response": done}));
    }
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = json!(number);
    }
    events.iter().map(typed_event).collect()
}

pub(super) fn object(step: &ScenarioStep, info: &FakeRequestInfo<'_>) -> Value {
    let number = info.number;
    let item = match &step.reply {
        ScenarioReply::Text(text) | ScenarioReply::Cut(text) | ScenarioReply::Fail { text, .. } => {
            json!({
                "id": format!("msg_fake{number:04}"),
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": text, "annotations": []}],
            })
        }
        ScenarioReply::Tool { name, input } => json!({
            "id": format!("fc_fake{number:04}"),
            "type": "function_call",
            "status": "completed",
            "call_id": format!("call_fake{number:04}"),
            "name": name,
            "arguments": input.to_string(),
        }),
        ScenarioReply::Error { .. } | ScenarioReply::Body { .. } => Value::Null,
    };
    let usage = step.usage;
    json!({
        "id": format!("resp_fake{number:04}"),
        "object": "response",
        "status": "completed",
        "model": info.model,
        "output": [item],
        "usage": {
            "input_tokens": usage.input_tokens,
            "input_tokens_details": {"cached_tokens": usage.cache_read_tokens},
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.total(),
        },
    })
}

/// Returns an error, in the format shared with chat completions.
pub(super) fn error(status: u16, message: &str) -> Value {
    let (kind, code) = match status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        402 => ("insufficient_quota", Some("insufficient_quota")),
        429 => ("requests", Some("rate_limit_exceeded")),
        400..=499 => ("invalid_request_error", None),
        _ => ("server_error", None),
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}
