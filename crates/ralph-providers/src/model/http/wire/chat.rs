//! OpenAI's Chat Completions API, which most providers offer.

use ralph_core::ports::{FinishReason, ModelRequest};
use ralph_core::profile::ReplyFormat;
use serde_json::{Value, json};

use super::super::parameters::RequestParameters;
use super::super::partial_reply::{PartialReply, parse_dollars, parse_tokens};

pub(super) fn body(model: &str, request: &ModelRequest, parameters: &RequestParameters) -> Value {
    let mut body = json!({
        "model": model,
        "messages": [
            {"role": "system", "content": request.system},
            {"role": "user", "content": request.user},
        ],
        "stream": true,
    });
    if parameters.counts_in_stream {
        body["stream_options"] = json!({"include_usage": true});
    }
    if let Some(limit) = parameters.output_limit {
        body[parameters.limit_key.as_str()] = json!(limit);
    }
    if let Some(temperature) = parameters.temperature {
        body["temperature"] = json!(temperature);
    }
    match parameters.format {
        ReplyFormat::Schema => {
            let schema = json!({"name": "reply", "strict": true, "schema": request.schema});
            body["response_format"] = json!({"type": "json_schema", "json_schema": schema});
        }
        ReplyFormat::Json => body["response_format"] = json!({"type": "json_object"}),
        ReplyFormat::Text => {}
    }
    body
}

pub(super) fn read_event(value: &Value, reply: &mut PartialReply) {
    read_common(value, reply);
    read_message(&value["choices"][0]["delta"], reply);
}

pub(super) fn read_whole(value: &Value, reply: &mut PartialReply) {
    read_common(value, reply);
    let message = &value["choices"][0]["message"];
    if message.is_object() {
        read_message(message, reply);
        reply.is_complete = true;
    }
}

/// Reads a message or a delta. Its content is a string or a list of parts; reasoning is not part of
/// the reply.
fn read_message(message: &Value, reply: &mut PartialReply) {
    reply.push_refusal(message["refusal"].as_str().unwrap_or_default());
    let content = &message["content"];
    reply.push_text(content.as_str().unwrap_or_default());
    for part in content.as_array().into_iter().flatten() {
        match part["type"].as_str() {
            Some("text" | "output_text") | None => {
                reply.push_text(part["text"].as_str().unwrap_or_default());
            }
            Some("refusal") => reply.push_refusal(part["refusal"].as_str().unwrap_or_default()),
            Some(_) => {}
        }
    }
}

fn read_common(value: &Value, reply: &mut PartialReply) {
    if let Some(model) = value["model"].as_str() {
        reply.model = Some(model.to_owned());
    }
    // Some servers send an empty reason with every event.
    let reason = value["choices"][0]["finish_reason"].as_str();
    if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
        reply.finish = Some(match reason {
            "length" | "max_tokens" => FinishReason::Length,
            "content_filter" | "sensitive" => FinishReason::Refused,
            _ => FinishReason::Complete,
        });
    }
    let usage = &value["usage"];
    if !usage.is_object() {
        return;
    }
    let counted = &mut reply.reported;
    counted.input = parse_tokens(&usage["prompt_tokens"]).or(counted.input);
    if let Some(output) = parse_tokens(&usage["completion_tokens"]) {
        let reasoning = &usage["completion_tokens_details"]["reasoning_tokens"];
        counted.count_output(output, reasoning, &usage["total_tokens"]);
    }
    let details = &usage["prompt_tokens_details"];
    let cache_read = parse_tokens(&details["cached_tokens"])
        .or_else(|| parse_tokens(&usage["prompt_cache_hit_tokens"]))
        .or_else(|| parse_tokens(&usage["cache_read_input_tokens"]));
    let cache_write = parse_tokens(&usage["cache_creation_input_tokens"])
        .or_else(|| parse_tokens(&details["cache_creation_tokens"]))
        .or_else(|| parse_tokens(&details["cache_write_tokens"]));
    counted.cache_read = cache_read.unwrap_or(counted.cache_read);
    counted.cache_write = cache_write.unwrap_or(counted.cache_write);
    let for_an_hour = &details["cache_creation_token_details"]["ephemeral_1h_input_tokens"];
    counted.cache_write_1h = parse_tokens(for_an_hour).unwrap_or(counted.cache_write_1h);
    counted.billed = usage["cost"]
        .as_f64()
        .and_then(parse_dollars)
        .or(counted.billed);
}
