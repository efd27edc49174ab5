//! Request options whose cost cannot be metered: refused, or rewritten to the standard price.
//!
//! The meter knows one price per model. Options that are billed at another price, later, or by a
//! count that the response does not contain must not reach the provider.

use ralph_core::net::{EgressDecider, EgressReason};
use serde_json::{Value, json};

use super::model_request::ParsedModelRequest;
use super::refusal::CredentialRefusal;
use crate::meter::ModelWireFormat;

/// The provider that has a project-level default tier.
const OPENAI: &str = "openai";

/// Refuses or rewrites the options of a request that the meter cannot price.
///
/// With a cost budget, a missing tier at OpenAI is set to the standard one, because the project may
/// have another default.
pub(super) fn screen(
    provider: &str,
    has_cost_budget: bool,
    request: &mut ParsedModelRequest,
) -> Result<(), CredentialRefusal> {
    if request
        .field("background")
        .is_some_and(|value| *value != false)
    {
        return Err(unmetered_refusal(
            "the response to a `background` request does not report its usage",
            "send the request without `background`",
        ));
    }
    set_standard_tier(provider == OPENAI && has_cost_budget, request)?;
    for (key, standard) in [("speed", "standard"), ("inference_geo", "global")] {
        if request.field(key).is_some_and(|value| value != standard) {
            return Err(unmetered_refusal(
                &format!("`{key}` other than `{standard}` has a different price"),
                &format!("send the request without `{key}`"),
            ));
        }
    }
    for key in ["prediction", "audio"] {
        if request.field(key).is_some() {
            return Err(unmetered_refusal(
                &format!("`{key}` is billed beyond the output limit"),
                &format!("send the request without `{key}`"),
            ));
        }
    }
    reject_audio_output(request)?;
    reject_server_compaction(request)?;
    shorten_cache_writes(request);
    Ok(())
}

/// Replaces `auto`, which may select a more expensive tier, with the standard tier; also sets a
/// missing tier if requested.
fn set_standard_tier(
    sets_absent: bool,
    request: &mut ParsedModelRequest,
) -> Result<(), CredentialRefusal> {
    let (standard, same): (_, &[&str]) = match request.wire {
        ModelWireFormat::AnthropicMessages => ("standard_only", &["standard_only"]),
        ModelWireFormat::OpenAiChat | ModelWireFormat::OpenAiResponses => {
            ("default", &["default", "standard"])
        }
    };
    let is_rewritten = match request.field("service_tier").map(Value::as_str) {
        None => sets_absent && request.wire != ModelWireFormat::AnthropicMessages,
        Some(Some("auto")) => true,
        Some(Some(tier)) if same.contains(&tier) => false,
        Some(_) => {
            return Err(unmetered_refusal(
                "this `service_tier` has a different price",
                "send the request without `service_tier`",
            ));
        }
    };
    if is_rewritten {
        let fields = request.fields_mut();
        fields.insert("service_tier".to_owned(), json!(standard));
    }
    Ok(())
}

fn reject_audio_output(request: &ParsedModelRequest) -> Result<(), CredentialRefusal> {
    let modalities = request.field("modalities").and_then(Value::as_array);
    if modalities.is_some_and(|list| list.iter().any(|kind| kind != "text")) {
        return Err(unmetered_refusal(
            "only text output has a known price",
            "send the request without `modalities`",
        ));
    }
    Ok(())
}

/// Compaction by the provider is a separate call whose tokens are not part of the reported usage.
fn reject_server_compaction(request: &ParsedModelRequest) -> Result<(), CredentialRefusal> {
    let Some(management) = request.field("context_management") else {
        return Ok(());
    };
    let edits = management.get("edits").unwrap_or(management).as_array();
    let compacts = |edit: &Value| {
        let kind = edit["type"].as_str().unwrap_or_default();
        kind.starts_with("compact")
    };
    if edits.is_some_and(|edits| edits.iter().any(compacts)) {
        return Err(unmetered_refusal(
            "the provider bills compaction separately from the response",
            "compact the conversation in the client",
        ));
    }
    Ok(())
}

/// Shortens cache entries to the default lifetime, because one-hour entries cost more.
fn shorten_cache_writes(request: &mut ParsedModelRequest) {
    fn is_long(control: &Value) -> bool {
        control.get("ttl").is_some_and(|ttl| *ttl != "5m")
    }
    fn any(value: &Value) -> bool {
        match value {
            Value::Object(fields) => fields
                .iter()
                .any(|(key, value)| (key == "cache_control" && is_long(value)) || any(value)),
            Value::Array(items) => items.iter().any(any),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }
    fn shorten(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields.iter_mut() {
                    if key == "cache_control" && is_long(value) {
                        value["ttl"] = json!("5m");
                    }
                    shorten(value);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(shorten),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    if request.wire != ModelWireFormat::AnthropicMessages {
        return;
    }
    let is_own_long = request.field("cache_control").is_some_and(is_long);
    if is_own_long {
        request.fields_mut()["cache_control"]["ttl"] = json!("5m");
    }
    if request.fields().values().any(any) {
        request.fields_mut().values_mut().for_each(shorten);
    }
}

fn unmetered_refusal(why: &str, what_to_do: &str) -> CredentialRefusal {
    let text = format!("the request cannot be metered — {why} — {what_to_do}");
    CredentialRefusal::new(400, EgressReason::NotMetered, EgressDecider::Budget, &text)
}

#[cfg(test)]
mod tests {
    use super::super::model_request::tests::parse_request;
    use super::*;

    /// Returns the screened request body, or the text of the refusal.
    fn screened(provider: &str, wire: ModelWireFormat, body: &Value) -> Result<Value, String> {
        let mut request = parse_request(wire, &body.to_string()).map_err(|refused| refused.text)?;
        screen(provider, true, &mut request).map_err(|refused| {
            assert_eq!(refused.status.as_u16(), 400);
            assert_eq!(refused.decision.reason, EgressReason::NotMetered);
            refused.text
        })?;
        Ok(serde_json::from_slice(&request.into_body()).unwrap())
    }

    fn request_with(extra: &Value) -> Value {
        let mut body = json!({"model": "m", "messages": []});
        for (key, value) in extra.as_object().unwrap() {
            body[key] = value.clone();
        }
        body
    }

    #[test]
    fn options_with_other_prices_are_refused() {
        let (messages, chat, responses) = (
            ModelWireFormat::AnthropicMessages,
            ModelWireFormat::OpenAiChat,
            ModelWireFormat::OpenAiResponses,
        );
        for (wire, extra) in [
            (responses, json!({"background": true})),
            (responses, json!({"background": "true"})),
            (responses, json!({"background": 1})),
            (responses, json!({"service_tier": "priority"})),
            (responses, json!({"service_tier": "flex"})),
            (chat, json!({"service_tier": "scale"})),
            (chat, json!({"service_tier": 7})),
            (messages, json!({"service_tier": "priority"})),
            (messages, json!({"speed": "fast"})),
            (messages, json!({"inference_geo": "us"})),
            (
                chat,
                json!({"prediction": {"type": "content", "content": "x"}}),
            ),
            (chat, json!({"audio": {"voice": "x"}})),
            (chat, json!({"modalities": ["text", "audio"]})),
            (
                messages,
                json!({"context_management": {"edits": [{"type": "compact_20260112"}]}}),
            ),
            (
                responses,
                json!({"context_management": [{"type": "compaction"}]}),
            ),
        ] {
            let found = screened("own", wire, &request_with(&extra));
            let text = found.expect_err(&extra.to_string());
            assert!(text.contains("cannot be metered"), "{text}");
        }
    }

    #[test]
    fn options_with_standard_prices_pass_unchanged() {
        for extra in [
            json!({}),
            json!({"background": false, "service_tier": null, "speed": null}),
            json!({"speed": "standard", "modalities": ["text"]}),
            json!({"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}),
            json!({"system": [{"cache_control": {"type": "ephemeral", "ttl": "5m"}}]}),
        ] {
            for wire in [
                ModelWireFormat::AnthropicMessages,
                ModelWireFormat::OpenAiChat,
                ModelWireFormat::OpenAiResponses,
            ] {
                let body = request_with(&extra);
                assert_eq!(screened("own", wire, &body), Ok(body));
            }
        }
    }

    #[test]
    fn the_standard_tier_is_set_if_another_could_apply() {
        let auto = request_with(&json!({"service_tier": "auto"}));
        for (provider, wire, body, tier) in [
            (
                "openai",
                ModelWireFormat::OpenAiChat,
                request_with(&json!({})),
                "default",
            ),
            (
                "openai",
                ModelWireFormat::OpenAiResponses,
                auto.clone(),
                "default",
            ),
            ("own", ModelWireFormat::OpenAiChat, auto.clone(), "default"),
            (
                "anthropic",
                ModelWireFormat::AnthropicMessages,
                auto,
                "standard_only",
            ),
        ] {
            let sent = screened(provider, wire, &body).unwrap();
            assert_eq!(sent["service_tier"], tier, "{provider} {wire:?}");
        }
    }

    #[test]
    fn cache_entries_have_the_default_lifetime() {
        let long = json!({"type": "ephemeral", "ttl": "1h"});
        let body = json!({
            "model": "m",
            "cache_control": long,
            "system": [{"type": "text", "text": "ttl", "cache_control": long}],
            "messages": [{"content": [{"content": [{"cache_control": long}]}]}],
        });
        let sent = screened("anthropic", ModelWireFormat::AnthropicMessages, &body).unwrap();
        let text = sent.to_string();
        assert!(!text.contains("1h"), "{text}");
        assert_eq!(text.matches(r#""ttl":"5m""#).count(), 3, "{text}");
    }
}
