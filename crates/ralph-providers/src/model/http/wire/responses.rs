//! OpenAI's Responses API.

use ralph_core::ports::{FinishReason, ModelRequest};
use ralph_core::profile::ReplyFormat;
use serde_json::{Value, json};

use super::super::parameters::RequestParameters;
use super::super::partial_reply::{PartialReply, parse_tokens};
use super::super::rejection::ProviderRejection;
use super::ReplyReadError;

pub(super) fn body(model: &str, request: &ModelRequest, parameters: &RequestParameters) -> Value {
    let mut body = json!({
        "model": model,
        "instructions": request.system,
        "input": request.user,
        "stream": true,
        // The provider must not store the call.
        "store": false,
    });
    if let Some(limit) = parameters.output_limit {
        body["max_output_tokens"] = json!(limit);
    }
    if let Some(temperature) = parameters.temperature {
        body["temperature"] = json!(temperature);
    }
    let format = match parameters.format {
        ReplyFormat::Schema => {
            json!({"type": "json_schema", "name": "reply", "strict": true, "schema": request.schema})
        }
        ReplyFormat::Json => json!({"type": "json_object"}),
        ReplyFormat::Text => return body,
    };
    body["text"] = json!({ "format": format });
    body
}

pub(super) fn read_event(value: &Value, reply: &mut PartialReply) -> Result<(), ReplyReadError> {
    match value["type"].as_str().unwrap_or_default() {
        "response.output_text.delta" => {
            reply.push_text(value["delta"].as_str().unwrap_or_default());
        }
        "response.refusal.delta" => {
            reply.push_refusal(value["delta"].as_str().unwrap_or_default());
        }
        "response.refusal.done" if reply.refusal.is_empty() => {
            reply.push_refusal(value["refusal"].as_str().unwrap_or_default());
        }
        "response.completed" | "response.incomplete" | "response.failed" => {
            read_end(&value["response"], reply)?;
            reply.is_complete = true;
        }
        _ => {}
    }
    Ok(())
}

pub(super) fn read_whole(value: &Value, reply: &mut PartialReply) -> Result<(), ReplyReadError> {
    let Some(output) = value["output"].as_array() else {
        return Ok(());
    };
    let parts = output
        .iter()
        .filter(|item| item["type"] == "message")
        .filter_map(|item| item["content"].as_array())
        .flatten();
    for part in parts {
        match part["type"].as_str() {
            Some("output_text") => reply.push_text(part["text"].as_str().unwrap_or_default()),
            Some("refusal") => reply.push_refusal(part["refusal"].as_str().unwrap_or_default()),
            Some(_) | None => {}
        }
    }
    read_end(value, reply)?;
    reply.is_complete = true;
    Ok(())
}

/// Reads the final state of a response.
fn read_end(response: &Value, reply: &mut PartialReply) -> Result<(), ReplyReadError> {
    if let Some(error) = response.get("error").filter(|error| error.is_object()) {
        return Err(ReplyReadError::Rejected(
            ProviderRejection::from_error_value(error),
        ));
    }
    if let Some(model) = response["model"].as_str() {
        reply.model = Some(model.to_owned());
    }
    let incomplete_reason = response["incomplete_details"]["reason"].as_str();
    let finish = match incomplete_reason {
        Some("content_filter") => FinishReason::Refused,
        Some(_) => FinishReason::Length,
        None => FinishReason::Complete,
    };
    reply.finish.get_or_insert(finish);
    let usage = &response["usage"];
    let counted = &mut reply.reported;
    counted.input = parse_tokens(&usage["input_tokens"]);
    if let Some(output) = parse_tokens(&usage["output_tokens"]) {
        let reasoning = &usage["output_tokens_details"]["reasoning_tokens"];
        counted.count_output(output, reasoning, &usage["total_tokens"]);
    }
    counted.cache_read = parse_tokens(&usage["input_tokens_details"]["cached_tokens"]).unwrap_or(0);
    Ok(())
}
