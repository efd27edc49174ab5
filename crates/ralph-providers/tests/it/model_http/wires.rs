//! Requests and replies of each wire API, as used by real providers.

use ralph_core::ports::{FinishReason, Model as _, ModelRequest, TokenUsage};
use ralph_core::profile::WireApi;
use ralph_test::{FakeModelApi, FakeResponse};
use serde_json::{Value, json};

use super::{ask, model, question};

const ALL: [WireApi; 4] = [
    WireApi::Chat,
    WireApi::Responses,
    WireApi::Messages,
    WireApi::Gemini,
];

/// Returns a stream as sent by the provider of a wire API.
fn streamed_response(wire: WireApi) -> FakeResponse {
    let response = FakeResponse::stream().text(": keep alive\n\n");
    match wire {
        WireApi::Chat => response
            .event(r#"{"model":"one-2026","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#)
            .event(r#"{"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}"#)
            .event(r#"{"choices":[{"index":0,"delta":{"content":"hél"}}]}"#)
            .event(r#"{"choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":"stop"}]}"#)
            .event(r#"{"choices":[{"index":0,"delta":{}}],"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":60}}}"#)
            .event("[DONE]"),
        WireApi::Responses => response
            .named_event("response.created", r#"{"type":"response.created","response":{"id":"r"}}"#)
            .named_event("response.output_text.delta", r#"{"type":"response.output_text.delta","delta":"hél"}"#)
            .named_event("response.output_text.delta", r#"{"type":"response.output_text.delta","delta":"lo"}"#)
            .named_event("response.completed", r#"{"type":"response.completed","response":{"model":"one-2026","status":"completed","error":null,"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":60},"output_tokens":7}}}"#),
        WireApi::Messages => response
            .named_event("message_start", r#"{"type":"message_start","message":{"model":"one-2026","usage":{"input_tokens":40,"cache_read_input_tokens":60,"cache_creation_input_tokens":0,"output_tokens":1}}}"#)
            .named_event("ping", r#"{"type":"ping"}"#)
            .named_event("content_block_start", r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#)
            .named_event("content_block_delta", r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#)
            .named_event("content_block_delta", r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hél"}}"#)
            .named_event("content_block_delta", r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}}"#)
            .named_event("message_delta", r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}"#)
            .named_event("message_stop", r#"{"type":"message_stop"}"#),
        WireApi::Gemini => response
            .event(r#"{"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"hél"}]}}],"modelVersion":"one-2026"}"#)
            .event(r#"{"candidates":[{"content":{"parts":[{"text":"lo"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":4,"thoughtsTokenCount":3}}"#),
    }
}

/// Returns a complete reply, which some servers send although a stream was requested.
fn complete_response(wire: WireApi) -> &'static str {
    match wire {
        WireApi::Chat => {
            r#"{"model":"one-2026","choices":[{"message":{"content":"héllo"},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":60}}}"#
        }
        WireApi::Responses => {
            r#"{"model":"one-2026","status":"completed","error":null,"output":[{"type":"reasoning"},{"type":"message","content":[{"type":"output_text","text":"héllo"}]}],"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":60},"output_tokens":7}}"#
        }
        WireApi::Messages => {
            r#"{"model":"one-2026","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"héllo"}],"stop_reason":"end_turn","usage":{"input_tokens":40,"cache_read_input_tokens":60,"output_tokens":7}}"#
        }
        WireApi::Gemini => {
            r#"[{"candidates":[{"content":{"parts":[{"text":"hél"}]}}],"modelVersion":"one-2026"},{"candidates":[{"content":{"parts":[{"text":"lo"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":7}}]"#
        }
    }
}

#[tokio::test]
async fn an_answer_is_read_as_a_stream_and_as_a_whole() {
    for wire in ALL {
        let api = FakeModelApi::start([
            streamed_response(wire),
            FakeResponse::json(200, complete_response(wire)),
        ])
        .unwrap();
        let model = model(wire, &api);
        for _ in 0..2 {
            let reply = ask(&model).await.unwrap();
            assert_eq!(reply.text, "héllo", "{wire:?}");
            assert_eq!(reply.finish, FinishReason::Complete);
            assert_eq!(reply.answered_by.as_deref(), Some("one-2026"));
            let usage = TokenUsage {
                input_tokens: 100,
                output_tokens: 7,
                cache_read_tokens: 60,
                ..TokenUsage::default()
            };
            // Only Gemini's stream reports reasoning tokens.
            let counted = TokenUsage {
                reasoning_tokens: 0,
                ..reply.usage
            };
            assert_eq!(counted, usage, "{wire:?}");
        }
    }
}

#[tokio::test]
async fn requests_match_the_wire_api() {
    for (wire, line, key, expected) in [
        (
            WireApi::Chat,
            "POST /chat/completions HTTP/1.1",
            "authorization",
            r#"{"model":"one","messages":[{"role":"system","content":"the rules"},{"role":"user","content":"the task"}],"stream":true,"stream_options":{"include_usage":true},"max_tokens":1000,"temperature":0.5,"response_format":{"type":"json_schema","json_schema":{"name":"reply","strict":true,"schema":"SCHEMA"}}}"#,
        ),
        (
            WireApi::Responses,
            "POST /responses HTTP/1.1",
            "authorization",
            r#"{"model":"one","instructions":"the rules","input":"the task","stream":true,"store":false,"max_output_tokens":1000,"temperature":0.5,"text":{"format":{"type":"json_schema","name":"reply","strict":true,"schema":"SCHEMA"}}}"#,
        ),
        (
            WireApi::Messages,
            "POST /v1/messages HTTP/1.1",
            "x-api-key",
            r#"{"model":"one","max_tokens":1000,"system":[{"type":"text","text":"the rules"}],"messages":[{"role":"user","content":"the task"}],"stream":true,"temperature":0.5,"output_config":{"format":{"type":"json_schema","schema":"SCHEMA"}}}"#,
        ),
        (
            WireApi::Gemini,
            "POST /v1beta/models/one:streamGenerateContent?alt=sse HTTP/1.1",
            "x-goog-api-key",
            r#"{"systemInstruction":{"parts":[{"text":"the rules"}]},"contents":[{"role":"user","parts":[{"text":"the task"}]}],"generationConfig":{"maxOutputTokens":1000,"temperature":0.5,"responseMimeType":"application/json","responseJsonSchema":"SCHEMA"}}"#,
        ),
    ] {
        let api = FakeModelApi::start([streamed_response(wire)]).unwrap();
        ask(&model(wire, &api)).await.unwrap();
        let received = &api.received()[0];
        assert_eq!(received.line, line);
        assert!(received.headers[key].ends_with(super::KEY), "{wire:?}");
        let schema = ralph_core::action::json_schema().to_string();
        let body: Value = serde_json::from_str(&received.body).unwrap();
        assert_eq!(body.to_string().replace(&schema, "\"SCHEMA\""), expected);
    }
}

#[tokio::test]
async fn a_request_for_another_format_is_not_held_to_the_schema() {
    for (wire, key, expected) in [
        (
            WireApi::Chat,
            "response_format",
            json!({"type": "json_object"}),
        ),
        (
            WireApi::Responses,
            "text",
            json!({"format": {"type": "json_object"}}),
        ),
        (WireApi::Messages, "output_config", Value::Null),
    ] {
        let api = FakeModelApi::start([streamed_response(wire)]).unwrap();
        let request = ModelRequest {
            schema: None,
            ..question()
        };
        model(wire, &api).ask_once(&request).await.unwrap();
        let body: Value = serde_json::from_str(&api.received()[0].body).unwrap();
        assert_eq!(body[key], expected, "{wire:?}");
    }
}

#[tokio::test]
async fn a_request_lowers_the_output_limit_of_its_profile_and_never_raises_it() {
    for (wire, path) in [
        (WireApi::Chat, "/max_tokens"),
        (WireApi::Responses, "/max_output_tokens"),
        (WireApi::Messages, "/max_tokens"),
        (WireApi::Gemini, "/generationConfig/maxOutputTokens"),
    ] {
        for (limit, sent) in [(300, 300), (5000, 1000)] {
            let api = FakeModelApi::start([streamed_response(wire)]).unwrap();
            let request = ModelRequest {
                max_output_tokens: Some(limit),
                ..question()
            };
            let model = model(wire, &api);
            assert_eq!(model.output_limit(), Some(1000));
            model.ask_once(&request).await.unwrap();
            let body: Value = serde_json::from_str(&api.received()[0].body).unwrap();
            assert_eq!(body.pointer(path), Some(&json!(sent)), "{wire:?}");
        }
    }
}

#[tokio::test]
async fn why_an_answer_ended_is_understood() {
    let chat = |reason: &str| {
        (
            WireApi::Chat,
            format!(
                r#"{{"choices":[{{"message":{{"content":"x"}},"finish_reason":"{reason}"}}]}}"#
            ),
        )
    };
    let responses = |reason: &str| {
        (
            WireApi::Responses,
            format!(r#"{{"output":[],"incomplete_details":{{"reason":"{reason}"}}}}"#),
        )
    };
    let messages = |reason: &str| {
        (
            WireApi::Messages,
            format!(r#"{{"content":[{{"type":"text","text":"x"}}],"stop_reason":"{reason}"}}"#),
        )
    };
    let gemini = |reason: &str| {
        (
            WireApi::Gemini,
            format!(r#"{{"candidates":[{{"content":{{"parts":[]}},"finishReason":"{reason}"}}]}}"#),
        )
    };
    for ((wire, body), finish) in [
        (chat("length"), FinishReason::Length),
        (chat("content_filter"), FinishReason::Refused),
        (chat("stop"), FinishReason::Complete),
        (responses("max_output_tokens"), FinishReason::Length),
        (responses("content_filter"), FinishReason::Refused),
        (messages("max_tokens"), FinishReason::Length),
        (messages("refusal"), FinishReason::Refused),
        (messages("stop_sequence"), FinishReason::Complete),
        (gemini("MAX_TOKENS"), FinishReason::Length),
        (gemini("SAFETY"), FinishReason::Refused),
        (
            (
                WireApi::Gemini,
                r#"{"promptFeedback":{"blockReason":"OTHER"}}"#.to_owned(),
            ),
            FinishReason::Refused,
        ),
    ] {
        let api = FakeModelApi::start([FakeResponse::json(200, &body)]).unwrap();
        let reply = ask(&model(wire, &api)).await.unwrap();
        assert_eq!(reply.finish, finish, "{body}");
    }
}

#[tokio::test]
async fn rejected_parameters_are_omitted_from_then_on() {
    let rejections = [
        "Unsupported value: 'temperature' does not support 0.5 with this model.",
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
    ];
    let mut responses: Vec<FakeResponse> = rejections
        .iter()
        .map(|message| {
            let body = serde_json::json!({"error": {"message": message, "code": "unsupported"}});
            FakeResponse::json(400, &body.to_string())
        })
        .collect();
    responses.push(streamed_response(WireApi::Chat));
    let api = FakeModelApi::start(responses).unwrap();
    let model = model(WireApi::Chat, &api);
    assert_eq!(ask(&model).await.unwrap().text, "héllo");
    assert_eq!(ask(&model).await.unwrap().text, "héllo");
    let received = api.received();
    assert_eq!(received.len(), 5);
    for request in &received[3..] {
        let body: Value = serde_json::from_str(&request.body).unwrap();
        assert_eq!(body["max_completion_tokens"], 1000);
        assert_eq!(body["response_format"]["type"], "json_object");
        assert!(body.get("temperature").is_none() && body.get("max_tokens").is_none());
    }
}
