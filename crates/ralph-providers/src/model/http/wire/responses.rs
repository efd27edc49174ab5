//! `OpenAI`'s responses.

use ralph_core::ports::{Finish, ModelRequest};
use ralph_core::profile::ReplyFormat;
use serde_json::{Value, json};

use super::super::answer::{Answer, tokens};
use super::super::parameters::Parameters;
use super::super::refusal::Refusal;
use super::Trouble;

pub(super) fn body(model: &str, request: &ModelRequest, parameters: &Parameters) -> Value {
    let mut body = json!({
        "model": model,
        "instructions": request.system,
        "input": request.user,
        "stream": true,
        // Nothing of a call is remembered, at the provider's neither.
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

pub(super) fn read_event(value: &Value, answer: &mut Answer) -> Result<(), Trouble> {
    match value["type"].as_str().unwrap_or_default() {
        "response.output_text.delta" => answer.add(value["delta"].as_str().unwrap_or_default()),
        "response.refusal.delta" => answer.refuse(value["delta"].as_str().unwrap_or_default()),
        "response.refusal.done" if answer.refusal.is_empty() => {
            answer.refuse(value["refusal"].as_str().unwrap_or_default());
        }
        "response.completed" | "response.incomplete" | "response.failed" => {
            read_end(&value["response"], answer)?;
            answer.is_complete = true;
        }
        _ => {}
    }
    Ok(())
}

pub(super) fn read_whole(value: &Value, answer: &mut Answer) -> Result<(), Trouble> {
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
            Some("output_text") => answer.add(part["text"].as_str().unwrap_or_default()),
            Some("refusal") => answer.refuse(part["refusal"].as_str().unwrap_or_default()),
            Some(_) | None => {}
        }
    }
    read_end(value, answer)?;
    answer.is_complete = true;
    Ok(())
}

/// Reads what a response says once it has ended.
fn read_end(response: &Value, answer: &mut Answer) -> Result<(), Trouble> {
    if let Some(error) = response.get("error").filter(|error| error.is_object()) {
        return Err(Trouble::Refused(Refusal::in_answer(error)));
    }
    if let Some(model) = response["model"].as_str() {
        answer.model = Some(model.to_owned());
    }
    let cut_by = response["incomplete_details"]["reason"].as_str();
    let finish = match cut_by {
        Some("content_filter") => Finish::Refused,
        Some(_) => Finish::Length,
        None => Finish::Complete,
    };
    answer.finish.get_or_insert(finish);
    let usage = &response["usage"];
    let counted = &mut answer.counted;
    counted.input = tokens(&usage["input_tokens"]);
    if let Some(output) = tokens(&usage["output_tokens"]) {
        let reasoning = &usage["output_tokens_details"]["reasoning_tokens"];
        counted.count_output(output, reasoning, &usage["total_tokens"]);
    }
    counted.cache_read = tokens(&usage["input_tokens_details"]["cached_tokens"]).unwrap_or(0);
    Ok(())
}
