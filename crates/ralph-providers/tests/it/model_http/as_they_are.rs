//! Complete replies that deviate from the documentation of their API.

use ralph_core::ports::{FinishReason, TokenUsage};
use ralph_core::profile::WireApi;
use ralph_test::{FakeModelApi, FakeResponse};

use super::{ask, model};

const TEXT: &str = r#"{"choices":[{"delta":{"content":"hello"}}]}"#;
const STOP: &str = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
const COUNT: &str = r#"{"choices":[],"usage":{"prompt_tokens":50,"completion_tokens":9}}"#;
const WHOLE: &str = r#"{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":50,"completion_tokens":9}}"#;

fn counted() -> TokenUsage {
    TokenUsage {
        input_tokens: 50,
        output_tokens: 9,
        ..TokenUsage::default()
    }
}

#[tokio::test]
async fn a_stream_is_complete_without_a_mark_at_its_end() {
    let stopped = || FakeResponse::stream().event(TEXT).event(STOP);
    for response in [
        stopped().event(COUNT),
        // The last event is not followed by an empty line.
        stopped().text(&format!("data: {COUNT}")),
        // The connection breaks after the reply is complete.
        stopped().event(COUNT).cut(),
        FakeResponse::new(
            200,
            "text/event-stream",
            &format!("data: {TEXT}\n\ndata: {STOP}\n\ndata: {COUNT}\n\n"),
        ),
    ] {
        let api = FakeModelApi::start([response]).unwrap();
        let reply = ask(&model(WireApi::Chat, &api)).await.unwrap();
        assert_eq!((reply.text.as_str(), reply.usage), ("hello", counted()));
        assert_eq!(reply.finish, FinishReason::Complete);
    }
    let text = r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"hello"}}"#;
    let stop = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":50,"output_tokens":9}}"#;
    let messages = FakeResponse::stream().event(text).event(stop);
    let api = FakeModelApi::start([messages]).unwrap();
    let reply = ask(&model(WireApi::Messages, &api)).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.usage), ("hello", counted()));
}

#[tokio::test]
async fn the_content_counts_and_not_its_declared_type() {
    let events =
        format!(": hi\n\ndata: {TEXT}\n\ndata: {STOP}\n\ndata: {COUNT}\n\ndata: [DONE]\n\n");
    let blanks = format!("\n \n{WHOLE}");
    let marked = format!("\u{feff}{WHOLE}");
    for (content_type, body) in [
        ("application/json", events.as_str()),
        ("text/plain", &events),
        ("", &events),
        ("text/event-stream", WHOLE),
        ("text/plain; charset=utf-8", WHOLE),
        ("application/octet-stream", WHOLE),
        ("application/json", &blanks),
        ("application/json", &marked),
    ] {
        let api = FakeModelApi::start([FakeResponse::new(200, content_type, body)]).unwrap();
        let reply = ask(&model(WireApi::Chat, &api)).await.unwrap();
        assert_eq!(
            (reply.text.as_str(), reply.usage),
            ("hello", counted()),
            "{content_type} {body}"
        );
    }
}

#[tokio::test]
async fn a_content_may_be_a_list_of_parts() {
    let parts = r#"[{"type":"thinking","thinking":"hm"},{"type":"text","text":"hel"},{"type":"text","text":"lo"}]"#;
    let whole =
        format!(r#"{{"choices":[{{"message":{{"content":{parts},"reasoning_content":"hm"}}}}]}}"#);
    let event =
        format!(r#"{{"choices":[{{"delta":{{"content":{parts}}},"finish_reason":"stop"}}]}}"#);
    for response in [
        FakeResponse::json(200, &whole),
        FakeResponse::stream().event(&event),
    ] {
        let api = FakeModelApi::start([response]).unwrap();
        let reply = ask(&model(WireApi::Chat, &api)).await.unwrap();
        assert_eq!(
            (reply.text.as_str(), reply.finish),
            ("hello", FinishReason::Complete)
        );
    }
}

#[tokio::test]
async fn a_refusal_keeps_the_words_of_the_model() {
    let chat = r#"{"choices":[{"message":{"content":null,"refusal":"I will not"},"finish_reason":"stop"}]}"#;
    let delta = |text: &str| format!(r#"{{"choices":[{{"delta":{{"refusal":"{text}"}}}}]}}"#);
    let responses =
        r#"{"output":[{"type":"message","content":[{"type":"refusal","refusal":"I will not"}]}]}"#;
    let part = r#"{"type":"response.refusal.delta","delta":"I will not"}"#;
    let end = r#"{"type":"response.completed","response":{"usage":{"input_tokens":5,"output_tokens":2}}}"#;
    let messages = r#"{"content":[{"type":"text","text":"I will not"}],"stop_reason":"refusal"}"#;
    for (wire, response) in [
        (WireApi::Chat, FakeResponse::json(200, chat)),
        (
            WireApi::Chat,
            FakeResponse::stream()
                .event(&delta("I will"))
                .event(&delta(" not"))
                .event(STOP)
                .event("[DONE]"),
        ),
        (WireApi::Responses, FakeResponse::json(200, responses)),
        (
            WireApi::Responses,
            FakeResponse::stream().event(part).event(end),
        ),
        (WireApi::Messages, FakeResponse::json(200, messages)),
    ] {
        let api = FakeModelApi::start([response]).unwrap();
        let reply = ask(&model(wire, &api)).await.unwrap();
        assert_eq!(
            (reply.text.as_str(), reply.finish),
            ("I will not", FinishReason::Refused),
            "{wire:?}"
        );
    }
}
