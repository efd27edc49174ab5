//! Token counts in the notations of all providers.

use ralph_core::ports::TokenUsage;
use ralph_core::profile::WireApi;
use ralph_test::{FakeModelApi, FakeResponse};
use serde_json::{Value, json};

use super::{ask, model};

/// Returns a complete response with this usage.
fn response_with_usage(wire: WireApi, usage: &Value) -> FakeResponse {
    let body = match wire {
        WireApi::Chat => json!({"choices": [{"message": {"content": "hello"}}], "usage": usage}),
        WireApi::Responses => json!({
            "output": [{"type": "message", "content": [{"type": "output_text", "text": "hello"}]}],
            "usage": usage,
        }),
        WireApi::Messages => {
            json!({"content": [{"type": "text", "text": "hello"}], "usage": usage})
        }
        WireApi::Gemini => json!({
            "candidates": [{"content": {"parts": [{"text": "hello"}]}, "finishReason": "STOP"}],
            "usageMetadata": usage,
        }),
    };
    FakeResponse::json(200, &body.to_string())
}

/// Asserts the parsed counts: input, output, cache read, cache write, one-hour cache write,
/// reasoning.
async fn assert_counted(wire: WireApi, usage: &Value, counts: [u64; 6]) {
    let [input, output, read, write, hour, reasoning] = counts;
    let api = FakeModelApi::start([response_with_usage(wire, usage)]).unwrap();
    let reply = ask(&model(wire, &api)).await.unwrap();
    let expected = TokenUsage {
        input_tokens: input,
        output_tokens: output,
        cache_read_tokens: read,
        cache_write_tokens: write,
        cache_write_1h_tokens: hour,
        reasoning_tokens: reasoning,
    };
    assert_eq!(reply.usage, expected, "{wire:?} {usage}");
}

#[tokio::test]
async fn reasoning_is_counted_once() {
    for (wire, usage, counts) in [
        // OpenAI: reasoning is part of the output.
        (
            WireApi::Chat,
            json!({"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150,
                   "completion_tokens_details": {"reasoning_tokens": 40}}),
            [100, 50, 0, 0, 0, 40],
        ),
        // xAI: reasoning is counted separately and included in the total.
        (
            WireApi::Chat,
            json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 150,
                   "prompt_tokens_details": {"text_tokens": 100, "cached_tokens": 60},
                   "completion_tokens_details": {"reasoning_tokens": 40}}),
            [100, 50, 60, 0, 0, 40],
        ),
        // Reasoning that exceeds the output cannot be part of it.
        (
            WireApi::Chat,
            json!({"prompt_tokens": 100, "completion_tokens": 10,
                   "completion_tokens_details": {"reasoning_tokens": 40}}),
            [100, 50, 0, 0, 0, 40],
        ),
        (
            WireApi::Responses,
            json!({"input_tokens": 100, "output_tokens": 10, "total_tokens": 150,
                   "output_tokens_details": {"reasoning_tokens": 40}}),
            [100, 50, 0, 0, 0, 40],
        ),
        (
            WireApi::Gemini,
            json!({"promptTokenCount": 100, "candidatesTokenCount": 10, "thoughtsTokenCount": 40,
                   "cachedContentTokenCount": 60}),
            [100, 50, 60, 0, 0, 40],
        ),
    ] {
        assert_counted(wire, &usage, counts).await;
    }
}

#[tokio::test]
async fn cache_writes_are_counted_by_their_time() {
    for (wire, usage, counts) in [
        // A gateway's notation for Anthropic's cache.
        (
            WireApi::Chat,
            json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110,
                   "prompt_tokens_details": {"cached_tokens": 20, "cache_creation_tokens": 30,
                       "cache_creation_token_details": {"ephemeral_1h_input_tokens": 5}}}),
            [100, 10, 20, 30, 5, 0],
        ),
        (
            WireApi::Messages,
            json!({"input_tokens": 50, "output_tokens": 10, "cache_read_input_tokens": 20,
                   "cache_creation_input_tokens": 30,
                   "cache_creation": {"ephemeral_5m_input_tokens": 25, "ephemeral_1h_input_tokens": 5}}),
            [100, 10, 20, 30, 5, 0],
        ),
        // A part never exceeds the whole.
        (
            WireApi::Messages,
            json!({"input_tokens": 50, "output_tokens": 10, "cache_creation_input_tokens": 30,
                   "cache_creation": {"ephemeral_1h_input_tokens": 31}}),
            [80, 10, 0, 30, 30, 0],
        ),
    ] {
        assert_counted(wire, &usage, counts).await;
    }
}
