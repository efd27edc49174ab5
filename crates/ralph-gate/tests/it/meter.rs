//! The cost of model calls, and exhausted budgets.

use std::time::Duration;

use ralph_core::money::Usd;
use ralph_core::ports::TokenUsage;
use ralph_core::price::{self, Price};
use ralph_gate::{Charge, Route, SandboxListener};

use crate::credentials::{placeholder, post, secret, start_provider};
use crate::support::{GateTestbed, body, header, send, status};

fn response(kind: &str, text: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{text}",
        text.len()
    )
}

fn stream(text: &str) -> String {
    response("text/event-stream", text)
}

const MESSAGES: &str = "event: message_start\n\
data: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-haiku-4-5-20251001\",\"usage\":{\"input_tokens\":10,\
\"cache_creation_input_tokens\":200,\"cache_read_input_tokens\":3000,\"output_tokens\":1}}}\n\n\
event: ping\ndata: {\"type\":\"ping\"}\n\n\
event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"Hello\"}}\n\n\
event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":40}}\n\n\
event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

fn usage(input: u64, output: u64, read: u64, write: u64) -> TokenUsage {
    TokenUsage {
        input_tokens: input,
        output_tokens: output,
        cache_read_tokens: read,
        cache_write_tokens: write,
        ..TokenUsage::default()
    }
}

/// Sends one request and returns its charge.
async fn charge_for(route: Route, path: &str, request: &str, response: &str) -> Charge {
    let mut testbed = GateTestbed::new();
    let (gate, _) = start_provider(&mut testbed, route, response).await;
    let auth = format!("Authorization: Bearer {}", placeholder(&gate));
    let response = send(
        &gate,
        SandboxListener::Credentials,
        post(path, &auth, request),
    )
    .await;
    assert_eq!(status(&response), 200, "{response}");
    let charges = testbed.sink.wait_for_charges(1).await;
    assert_eq!(charges.len(), 1);
    charges[0].clone()
}

#[tokio::test]
async fn anthropic_usage_is_charged() {
    let request = r#"{"model":"claude-haiku-4-5","stream":true,"messages":[]}"#;
    let whole = r#"{"model":"claude-haiku-4-5","usage":{"input_tokens":10,"cache_creation_input_tokens":200,"cache_read_input_tokens":3000,"output_tokens":40}}"#;
    // 10 × 1 + 200 × 1.25 + 3000 × 0.1 + 40 × 5 = 760 millionths.
    for text in [stream(MESSAGES), response("application/json", whole)] {
        let route = Route::anthropic_key(secret()).unwrap();
        let charge = charge_for(route, "/anthropic/v1/messages", request, &text).await;
        assert_eq!(charge.usage, usage(3210, 40, 3000, 200));
        assert_eq!(charge.cost, Usd::from_nanos(760_000));
        assert!(!charge.is_estimate && charge.model.starts_with("claude-haiku-4-5"));
    }
}

#[tokio::test]
async fn openai_usage_is_charged() {
    let chat = "data: {\"model\":\"gpt-5-2025-08-07\",\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n\
        data: {\"model\":\"gpt-5-2025-08-07\",\"choices\":[],\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":50,\
        \"prompt_tokens_details\":{\"cached_tokens\":600},\"completion_tokens_details\":{\"reasoning_tokens\":30}}}\n\n\
        data: [DONE]\n\n";
    let responses = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"model\":\"gpt-5\",\"usage\":null}}\n\n\
        event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\n\
        event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"model\":\"gpt-5\",\"usage\":{\"input_tokens\":1000,\
        \"input_tokens_details\":{\"cached_tokens\":600},\"output_tokens\":50,\"output_tokens_details\":{\"reasoning_tokens\":30}}}}\n\n";
    let whole_chat = r#"{"model":"gpt-5","choices":[{"message":{"content":"Hi"}}],"usage":{"prompt_tokens":1000,"completion_tokens":50,"prompt_tokens_details":{"cached_tokens":600}}}"#;
    let whole_responses = r#"{"model":"gpt-5","usage":{"input_tokens":1000,"output_tokens":50,"input_tokens_details":{"cached_tokens":600}}}"#;
    let request = r#"{"model":"gpt-5","stream":true}"#;
    for (path, text) in [
        ("/openai/v1/chat/completions", stream(chat)),
        ("/openai/v1/responses", stream(responses)),
        (
            "/openai/v1/chat/completions",
            response("application/json", whole_chat),
        ),
        (
            "/openai/v1/responses",
            response("application/json", whole_responses),
        ),
    ] {
        let charge = charge_for(Route::openai(secret()).unwrap(), path, request, &text).await;
        let reasoning_tokens = if text.contains("reasoning_tokens") {
            30
        } else {
            0
        };
        let expected = TokenUsage {
            reasoning_tokens,
            ..usage(1000, 50, 600, 0)
        };
        assert_eq!(charge.usage, expected, "{path}");
        // 400 × 1.25 + 600 × 0.125 + 50 × 10 = 1075 millionths.
        assert_eq!(charge.cost, Usd::from_nanos(1_075_000));
        assert!(!charge.is_estimate);
    }
}

#[tokio::test]
async fn streams_without_an_end_marker_and_other_content_types_are_charged() {
    // No `[DONE]`, no line end after the last event, content as a list.
    let chat = "data: {\"model\":\"gpt-5\",\"choices\":[{\"delta\":{\"content\":[{\"type\":\"text\",\"text\":\"Hi\"}]}}]}\n\n\
        data: {\"choices\":[{\"delta\":{\"content\":[]},\"finish_reason\":\"stop\"}],\
        \"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":50}}";
    let whole = r#"{"model":"gpt-5","choices":[{"message":{"content":[{"type":"text","text":"Hi"}]}}],"usage":{"prompt_tokens":1000,"completion_tokens":50}}"#;
    let request = r#"{"model":"gpt-5","stream":true}"#;
    for (kind, text) in [
        ("text/event-stream", chat),
        ("application/json", chat),
        ("text/plain", chat),
        ("text/event-stream", whole),
        ("text/plain; charset=utf-8", whole),
    ] {
        let route = Route::openai(secret()).unwrap();
        let path = "/openai/v1/chat/completions";
        let charge = charge_for(route, path, request, &response(kind, text)).await;
        assert_eq!(charge.usage, usage(1000, 50, 0, 0), "{kind} {text}");
        assert!(!charge.is_estimate, "{kind}");
    }
    let request = r#"{"model":"claude-haiku-4-5","stream":true,"messages":[]}"#;
    let (without_stop, _) = MESSAGES.split_once("event: message_stop").unwrap();
    for kind in ["text/event-stream", "application/json"] {
        let route = Route::anthropic_key(secret()).unwrap();
        let text = response(kind, without_stop.trim_end());
        let charge = charge_for(route, "/anthropic/v1/messages", request, &text).await;
        assert_eq!(charge.usage, usage(3210, 40, 3000, 200), "{kind}");
        assert!(!charge.is_estimate, "{kind}");
    }
}

#[tokio::test]
async fn separately_counted_reasoning_is_charged() {
    let chat = "data: {\"model\":\"gpt-5\",\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n\
        data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":50,\"total_tokens\":1350,\
        \"completion_tokens_details\":{\"reasoning_tokens\":300}}}\n\n\
        data: [DONE]\n\n";
    let responses = r#"{"model":"gpt-5","usage":{"input_tokens":1000,"output_tokens":50,"total_tokens":1350,"output_tokens_details":{"reasoning_tokens":300}}}"#;
    for (path, text) in [
        ("/openai/v1/chat/completions", stream(chat)),
        (
            "/openai/v1/responses",
            response("application/json", responses),
        ),
    ] {
        let request = r#"{"model":"gpt-5","stream":true}"#;
        let charge = charge_for(Route::openai(secret()).unwrap(), path, request, &text).await;
        let expected = TokenUsage {
            reasoning_tokens: 300,
            ..usage(1000, 350, 0, 0)
        };
        assert_eq!(charge.usage, expected, "{path}");
        // 1000 × 1.25 + 350 × 10 = 4750 millionths.
        assert_eq!(charge.cost, Usd::from_nanos(4_750_000));
    }
}

/// Returns the cost of a million tokens in each direction at the highest price.
fn highest_cost() -> Usd {
    price::cost(&price::highest_price(), &usage(1_000_000, 1_000_000, 0, 0))
}

#[tokio::test]
async fn unknown_models_are_charged_the_highest_price() {
    let whole =
        r#"{"model":"mystery","usage":{"prompt_tokens":1000000,"completion_tokens":1000000}}"#;
    let route = Route::openai(secret()).unwrap();
    let path = "/openai/v1/chat/completions";
    let charge = charge_for(
        route,
        path,
        r#"{"model":"mystery"}"#,
        &response("application/json", whole),
    )
    .await;
    assert_eq!(charge.cost, highest_cost());
    // The name of a scripted model does not make the call free either.
    let whole = whole.replace("mystery", "scripted:x");
    let route = Route::openai(secret()).unwrap();
    let charge = charge_for(
        route,
        path,
        r#"{"model":"scripted:x"}"#,
        &response("application/json", &whole),
    )
    .await;
    assert_eq!(charge.cost, highest_cost());
}

#[tokio::test]
async fn responses_without_usage_are_charged_their_reservation() {
    let text = "x".repeat(4000);
    let events = format!(
        "data: {{\"model\":\"gpt-5\",\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\ndata: [DONE]\n\n"
    );
    let route = Route::openai(secret()).unwrap();
    let request = r#"{"model":"gpt-5","stream":true,"max_completion_tokens":2000}"#;
    let charge = charge_for(
        route,
        "/openai/v1/chat/completions",
        request,
        &stream(&events),
    )
    .await;
    // Each byte may be a token, and the provider may add some.
    let input = request.len() as u64 + 1024;
    assert_eq!(
        (charge.usage, charge.is_estimate),
        (usage(input, 2000, 0, 0), true)
    );
    let price = price::embedded_price("openai/gpt-5").unwrap();
    assert_eq!(charge.cost, price::highest_cost(&price, input, 2000));
}

#[tokio::test]
async fn a_spent_budget_answers_402() {
    // Both providers bill more than allowed, and the excess is still charged.
    for (route, path, model, shape) in [
        (
            Route::anthropic_key(secret()),
            "/anthropic/v1/messages",
            "claude-haiku-4-5",
            "billing_error",
        ),
        (
            Route::openai(secret()),
            "/openai/v1/chat/completions",
            "gpt-5",
            "insufficient_quota",
        ),
    ] {
        let mut testbed = GateTestbed::new();
        testbed.budgets.max_cost = Usd::from_dollars(0.01);
        let whole = r#"{"usage":{"input_tokens":32100,"output_tokens":40,"prompt_tokens":32100,"completion_tokens":40}}"#;
        let (gate, received) = start_provider(
            &mut testbed,
            route.unwrap(),
            &response("application/json", whole),
        )
        .await;
        let auth = format!("Authorization: Bearer {}", placeholder(&gate));
        let request = post(path, &auth, &format!(r#"{{"model":"{model}"}}"#));
        let first = send(&gate, SandboxListener::Credentials, request.clone()).await;
        assert_eq!(status(&first), 200);
        testbed.sink.wait_for_charges(1).await;
        let second = send(&gate, SandboxListener::Credentials, request).await;
        assert_eq!(status(&second), 402, "{second}");
        assert_eq!(header(&second, "x-ralph-gate"), Some("budget-spent"));
        assert!(body(&second).contains(shape), "{second}");
        assert_eq!(received.text().matches("HTTP/1.1").count(), 1);
    }
}

#[tokio::test]
async fn the_token_budget_can_be_raised() {
    let mut testbed = GateTestbed::new();
    testbed.budgets.max_tokens = Some(3000);
    let route = Route::anthropic_key(secret()).unwrap();
    let name = route.endpoint().to_string();
    testbed
        .start_tls_host(&name, "api.anthropic.com", &stream(MESSAGES))
        .await;
    testbed.routes = vec![route];
    let (gate, meter) = testbed.build_gate();
    let auth = format!("x-api-key: {}", placeholder(&gate));
    let request = post(
        "/anthropic/v1/messages",
        &auth,
        r#"{"model":"claude-haiku-4-5"}"#,
    );
    for (max, code) in [(3000, 200), (3000, 402), (5000, 200), (5000, 402)] {
        testbed.budgets.max_tokens = Some(max);
        meter.set_budgets(&testbed.budgets);
        let response = send(&gate, SandboxListener::Credentials, request.clone()).await;
        assert_eq!(status(&response), code);
    }
    assert_eq!(meter.spent().tokens, 6500);
}

#[tokio::test]
async fn a_stream_far_beyond_the_budget_is_cut() {
    let mut testbed = GateTestbed::new();
    testbed.budgets.max_tokens = Some(2000);
    let delta = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"XXXX\"}}\n\n"
        .replace("XXXX", &"x".repeat(400));
    let endless = delta.repeat(200);
    let (gate, _) = start_provider(
        &mut testbed,
        Route::anthropic_key(secret()).unwrap(),
        &stream(&endless),
    )
    .await;
    let auth = format!("x-api-key: {}", placeholder(&gate));
    let request = post(
        "/anthropic/v1/messages",
        &auth,
        r#"{"model":"claude-haiku-4-5","stream":true}"#,
    );
    let response = send(&gate, SandboxListener::Credentials, request.clone()).await;
    assert_eq!(status(&response), 200);
    assert!(
        response.contains(
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"billing_error\""
        ),
        "{response}"
    );
    // The missing last chunk shows that the response is incomplete.
    assert!(!response.ends_with("0\r\n\r\n"));
    let charges = testbed.sink.wait_for_charges(1).await;
    let output = charges[0].usage.output_tokens;
    assert!(charges[0].is_estimate, "{charges:?}");
    // A chunk counts as a whole: 64 KiB are 16 thousand tokens.
    assert!((1000..20_000).contains(&output), "{charges:?}");
    assert_eq!(
        status(&send(&gate, SandboxListener::Credentials, request).await),
        402
    );
}

#[tokio::test]
async fn refusals_by_the_provider_are_free() {
    let text = "HTTP/1.1 529 Overloaded\r\ncontent-type: application/json\r\nretry-after: 3\r\ncontent-length: 2\r\n\r\n{}";
    let mut testbed = GateTestbed::new();
    let (gate, _) =
        start_provider(&mut testbed, Route::anthropic_key(secret()).unwrap(), text).await;
    let auth = format!("x-api-key: {}", placeholder(&gate));
    let request = post(
        "/anthropic/v1/messages",
        &auth,
        r#"{"model":"claude-haiku-4-5"}"#,
    );
    let response = send(&gate, SandboxListener::Credentials, request).await;
    assert_eq!(
        (status(&response), header(&response, "retry-after")),
        (529, Some("3"))
    );
    assert_eq!(testbed.sink.charges.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn requests_per_minute_are_limited() {
    let mut testbed = GateTestbed::new();
    testbed.rates.requests_per_minute = Some(2);
    testbed
        .rates
        .prices
        .add("openai/own".to_owned(), Price::FREE);
    let (gate, _) = start_provider(
        &mut testbed,
        Route::openai(secret()).unwrap(),
        &response("application/json", "{}"),
    )
    .await;
    let auth = format!("Authorization: Bearer {}", placeholder(&gate));
    let request = post("/openai/v1/chat/completions", &auth, r#"{"model":"own"}"#);
    for code in [200, 200, 429] {
        let response = send(&gate, SandboxListener::Credentials, request.clone()).await;
        assert_eq!(status(&response), code);
        if code == 429 {
            let wait: u64 = header(&response, "retry-after").unwrap().parse().unwrap();
            assert!((50..=60).contains(&wait), "{wait}");
            assert!(body(&response).contains("rate_limit_exceeded"));
        }
    }
    testbed.clock.advance(Duration::from_secs(61));
    assert_eq!(
        status(&send(&gate, SandboxListener::Credentials, request).await),
        200
    );
}
