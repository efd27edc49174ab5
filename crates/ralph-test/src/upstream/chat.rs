//! The OpenAI chat completions format.

use serde_json::{Value, json};

use super::responses;
use super::scenario::{ScenarioReply, ScenarioStep};
use super::wire::FakeRequestInfo;

pub(super) fn events(step: &ScenarioStep, info: &FakeRequestInfo<'_>) -> Vec<String> {
    let chunk = |delta: Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let mut object = head(info, "chat.completion.chunk");
        object["choices"] = json!([choice]);
        object
    };
    let delta = match &step.reply {
        ScenarioReply::Text(text) | ScenarioReply::Cut(text) | ScenarioReply::Fail { text, .. } => {
            json!({"content": text})
        }
        ScenarioReply::Tool { name, input } => {
            let mut call = tool_call(info, name, input);
            call["index"] = json!(0);
            json!({"tool_calls": [call]})
        }
        ScenarioReply::Error { .. } | ScenarioReply::Body { .. } => return Vec::new(),
    };
    let start = json!({"role": "assistant", "content": null});
    let mut events = vec![data(&chunk(start, None)), data(&chunk(delta, None))];
    if let ScenarioReply::Fail {
        status, message, ..
    } = &step.reply
    {
        events.push(data(&responses::error(*status, message)));
    } else if !matches!(step.reply, ScenarioReply::Cut(_)) {
        events.push(data(&chunk(json!({}), Some(finish_reason(step)))));
        let mut last = head(info, "chat.completion.chunk");
        last["choices"] = json!([]);
        last["usage"] = usage(step);
        events.push(data(&last));
        events.push("data: [DONE]\n\n".into());
    }
    events
}

pub(super) fn object(step: &ScenarioStep, info: &FakeRequestInfo<'_>) -> Value {
    let message = match &step.reply {
        ScenarioReply::Text(text) | ScenarioReply::Cut(text) | ScenarioReply::Fail { text, .. } => {
            json!({"role": "assistant", "content": text})
        }
        ScenarioReply::Tool { name, input } => json!({
            "role": "assistant",
            "content": null,
            "tool_calls": [tool_call(info, name, input)],
        }),
        ScenarioReply::Error { .. } | ScenarioReply::Body { .. } => Value::Null,
    };
    let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason(step)});
    let mut object = head(info, "chat.completion");
    object["choices"] = json!([choice]);
    object["usage"] = usage(step);
    object
}

fn head(info: &FakeRequestInfo<'_>, object: &str) -> Value {
    let id = format!("chatcmpl-fake{:04}", info.number);
    json!({"id": id, "object": object, "created": 1, "model": info.model})
}

fn tool_call(info: &FakeRequestInfo<'_>, name: &str, input: &Value) -> Value {
    json!({
        "id": format!("call_fake{:04}", info.number),
        "type": "function",
        "function": {"name": name, "arguments": input.to_string()},
    })
}

fn finish_reason(step: &ScenarioStep) -> &'static str {
    if matches!(step.reply, ScenarioReply::Tool { .. }) {
        "tool_calls"
    } else {
        "stop"
    }
}

fn usage(step: &ScenarioStep) -> Value {
    json!({
        "prompt_tokens": step.usage.input_tokens,
        "prompt_tokens_details": {"cached_tokens": step.usage.cache_read_tokens},
        "completion_tokens": step.usage.output_tokens,
        "total_tokens": step.usage.total(),
    })
}

fn data(object: &Value) -> String {
    format!("data: {object}\n\n")
}
