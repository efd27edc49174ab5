//! Error responses and unusable replies.

use std::time::{Duration, Instant};

use ralph_core::action::limits::MAX_REPLY_BYTES;
use ralph_core::ports::{FinishReason, ModelError, TokenUsage};
use ralph_core::profile::WireApi;
use ralph_providers::model::http::{HttpModel, HttpModelSettingsError, ModelTimeouts};
use ralph_test::{FakeModelApi, FakeResponse};

use super::{KEY, ask, model, settings};

const HALF: &str = r#"{"choices":[{"index":0,"delta":{"content":"{\"summary\":"}}]}"#;

/// Returns the error for a response, in one line.
async fn error_text(wire: WireApi, response: FakeResponse) -> String {
    let api = FakeModelApi::start([response]).unwrap();
    let error = ask(&model(wire, &api)).await.unwrap_err();
    let debug = format!("{error:?}");
    assert!(!debug.contains(KEY), "{debug}");
    match error {
        ModelError::Transient {
            status,
            retry_after,
            message,
            ..
        } => format!("transient {status} {retry_after:?} {message}"),
        ModelError::Unauthorized {
            status,
            message,
            key,
            ..
        } => format!("unauthorized {status} {key:?} {message}"),
        ModelError::Broken { message, fix, .. } => {
            format!("broken {message} — {}", fix.unwrap_or_default())
        }
        ModelError::QuotaUsedUp {
            resets_in, message, ..
        } => format!("quota {resets_in:?} {message}"),
        ModelError::CutOff {
            message,
            partial,
            usage,
            ..
        } => format!("cut off, {message}, {partial:?}, {} tokens", usage.total()),
    }
}

#[tokio::test]
async fn half_an_answer_is_an_error_that_is_charged() {
    for (response, expected) in [
        (
            FakeResponse::stream().event(HALF),
            "cut off, the stream ended before the reply was complete, \"{\\\"summary\\\":\", 10 tokens",
        ),
        (
            FakeResponse::stream().event(HALF).event(r#"{"choices":[{"delta":{},"finish_reason":""}],"usage":{"prompt_tokens":50,"completion_tokens":9}}"#),
            "cut off, the stream ended before the reply was complete, \"{\\\"summary\\\":\", 59 tokens",
        ),
        (
            FakeResponse::stream().event(HALF).event(r#"{"error":{"message":"the server is on fire","code":500}}"#).event("[DONE]"),
            "cut off, the server is on fire, \"{\\\"summary\\\":\", 10 tokens",
        ),
        (
            FakeResponse::stream().event(HALF).event("{\"choices\":"),
            "cut off, an event is not valid JSON: EOF while parsing a value at line 1 column 11, \"{\\\"summary\\\":\", 10 tokens",
        ),
        (
            FakeResponse::json(200, "{\"choices\":[{\"message\":"),
            "cut off, its JSON is incomplete, \"{\\\"choices\\\":[{\\\"message\\\":\", 14 tokens",
        ),
    ] {
        assert_eq!(error_text(WireApi::Chat, response).await, expected);
    }
    for response in [
        FakeResponse::stream().event(HALF).cut(),
        FakeResponse::json(200, "{\"choices\"").cut(),
    ] {
        let seen = error_text(WireApi::Chat, response).await;
        assert!(seen.starts_with("cut off, "), "{seen}");
    }
}

#[tokio::test]
async fn each_wire_needs_its_own_end() {
    let text = r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}"#;
    let delta = r#"{"type":"response.output_text.delta","delta":"x"}"#;
    let part = r#"{"candidates":[{"content":{"parts":[{"text":"x"}]}}]}"#;
    for (wire, event) in [
        (WireApi::Messages, text),
        (WireApi::Responses, delta),
        (WireApi::Gemini, part),
    ] {
        let seen = error_text(wire, FakeResponse::stream().event(event)).await;
        let expected = "cut off, the stream ended before the reply was complete, \"x\", 7 tokens";
        assert_eq!(seen, expected, "{wire:?}");
    }
}

#[tokio::test]
async fn an_error_in_a_stream_is_what_it_says_it_is() {
    let overloaded =
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let quota = r#"{"type":"response.failed","response":{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}}"#;
    for (wire, response, expected) in [
        (
            WireApi::Messages,
            FakeResponse::stream().named_event("error", overloaded),
            "transient 529 None overloaded_error: Overloaded",
        ),
        (
            WireApi::Responses,
            FakeResponse::stream().named_event("response.failed", quota),
            "quota None insufficient_quota: You exceeded your current quota",
        ),
        (
            WireApi::Chat,
            FakeResponse::json(200, r#"{"error":{"code":502,"message":"upstream"}}"#),
            "transient 502 None upstream",
        ),
    ] {
        assert_eq!(error_text(wire, response).await, expected);
    }
}

#[tokio::test]
async fn rejections_are_retried_or_final() {
    let busy = |status| FakeResponse::json(status, r#"{"error":{"message":"busy"}}"#);
    let echo = format!(r#"{{"error":{{"message":"no model for {KEY}"}}}}"#);
    for (response, expected) in [
        (
            busy(429).header("retry-after", "7"),
            "transient 429 Some(7s) busy",
        ),
        (
            busy(429).header("retry-after", "Thu, 01 Jan 2026 12:00:30 GMT"),
            "transient 429 Some(30s) busy",
        ),
        (
            busy(429).header("retry-after", "18000"),
            "quota Some(18000s) busy",
        ),
        (
            busy(429)
                .header("anthropic-ratelimit-tokens-remaining", "0")
                .header("anthropic-ratelimit-tokens-reset", "2026-01-01T17:00:00Z"),
            "quota Some(18000s) busy",
        ),
        (busy(503), "transient 503 None busy"),
        (busy(401), "unauthorized 401 Some(\"TEST_API_KEY\") busy"),
        (busy(403), "unauthorized 403 Some(\"TEST_API_KEY\") busy"),
        (
            FakeResponse::json(404, &echo),
            "broken status 404, no model for *** — correct `litellm_model` of its profile in `models.yaml`",
        ),
        (
            FakeResponse::json(400, r#"{"error":{"message":"max_tokens: 1000 > 512"}}"#),
            "broken status 400, max_tokens: 1000 > 512 — change `max_output_tokens` of its profile in `models.yaml`",
        ),
        (
            busy(429).header("retry-after", "0"),
            "transient 429 Some(0ns) busy",
        ),
        (
            FakeResponse::new(502, "text/html", "<html><h1>Bad gateway</h1></html>"),
            "transient 502 None a web page instead of an answer",
        ),
        (
            FakeResponse::new(200, "text/html", "<html>log in</html>"),
            "broken `127.0.0.1` responds with a web page instead of JSON — correct `api_base` of its profile in `models.yaml`",
        ),
    ] {
        assert_eq!(error_text(WireApi::Chat, response).await, expected);
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let other = FakeModelApi::start([FakeResponse::json(200, "{}")]).unwrap();
    for status in [301, 302, 307, 308] {
        let target = format!(
            "{}/chat/completions",
            other.url().replace("127.0.0.1", "localhost")
        );
        let moved = FakeResponse::new(status, "text/plain", "").header("location", &target);
        let seen = error_text(WireApi::Chat, moved).await;
        let expected = format!(
            "broken status {status}, a redirect to `localhost`, which must not receive the credential — correct `api_base` of its profile in `models.yaml`"
        );
        assert_eq!(seen, expected);
    }
    assert_eq!(other.received(), []);
}

#[tokio::test]
async fn slow_providers_time_out() {
    let long = Duration::from_secs(20);
    let timeouts = |first_byte, idle, total| ModelTimeouts {
        connect: Duration::from_secs(5),
        first_byte: Duration::from_millis(first_byte),
        idle: Duration::from_millis(idle),
        total: Duration::from_millis(total),
    };
    let dawdling = (0..60).fold(FakeResponse::stream(), |response, _| {
        response.event(HALF).wait(Duration::from_millis(50))
    });
    for (response, timeouts, expected) in [
        (
            FakeResponse::stream().wait(long),
            timeouts(200, 5000, 9000),
            "the answer of model `acme/one` was cut off: no data arrived within 0.2 s",
        ),
        (
            FakeResponse::stream().event(HALF).wait(long),
            timeouts(5000, 200, 9000),
            "the answer of model `acme/one` was cut off: no more data arrived within 0.2 s",
        ),
        (
            dawdling,
            timeouts(5000, 5000, 400),
            "the answer of model `acme/one` was cut off: it was not complete within 0.4 s",
        ),
    ] {
        let api = FakeModelApi::start([response]).unwrap();
        let mut settings = settings("acme/one", WireApi::Chat, &api.url(), KEY);
        settings.timeouts = timeouts;
        let started = Instant::now();
        let error = ask(&HttpModel::new(settings).unwrap()).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert!(started.elapsed() < long / 4);
    }
}

#[tokio::test]
async fn an_answer_beyond_the_limit_is_cut_and_says_so() {
    let chunk = "x".repeat(256 * 1024);
    let event = serde_json::json!({"choices": [{"delta": {"content": chunk}}]}).to_string();
    let endless = (0..40).fold(FakeResponse::stream(), |response, _| response.event(&event));
    let api = FakeModelApi::start([endless]).unwrap();
    let reply = ask(&model(WireApi::Chat, &api)).await.unwrap();
    assert_eq!(reply.finish, FinishReason::Length);
    assert!(reply.text.len() > MAX_REPLY_BYTES && reply.text.len() < MAX_REPLY_BYTES * 2);
    assert!(reply.usage.output_tokens > 500_000, "{:?}", reply.usage);
}

#[tokio::test]
async fn nonsense_is_not_counted() {
    for usage in [
        r#"{"prompt_tokens":-5,"completion_tokens":1e18}"#,
        r#"{"prompt_tokens":0,"completion_tokens":0}"#,
        "null",
    ] {
        let body = format!(
            r#"{{"choices":[{{"message":{{"content":"123456"}},"finish_reason":"stop"}}],"usage":{usage}}}"#
        );
        let api = FakeModelApi::start([FakeResponse::json(200, &body)]).unwrap();
        let reply = ask(&model(WireApi::Chat, &api)).await.unwrap();
        let expected = TokenUsage {
            input_tokens: 6,
            output_tokens: 2,
            ..TokenUsage::default()
        };
        assert_eq!(reply.usage, expected, "{usage}");
    }
}

#[tokio::test]
async fn a_refused_connection_can_be_retried() {
    let address = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let settings = settings("acme/one", WireApi::Chat, &format!("http://{address}"), KEY);
    let error = ask(&HttpModel::new(settings).unwrap()).await.unwrap_err();
    let ModelError::Transient {
        status: 0, message, ..
    } = error
    else {
        panic!("{error:?}");
    };
    let expected = format!("cannot reach `{address}`: Connection refused");
    assert!(message.starts_with(&expected), "{message}");
}

#[tokio::test]
async fn an_unknown_host_is_named_and_can_be_retried() {
    let settings = settings("acme/one", WireApi::Chat, "https://nowhere.invalid/v1", KEY);
    let error = ask(&HttpModel::new(settings).unwrap()).await.unwrap_err();
    let ModelError::Transient {
        status: 0, message, ..
    } = error
    else {
        panic!("{error:?}");
    };
    assert!(
        message.starts_with("cannot reach `nowhere.invalid`: "),
        "{message}"
    );
}

#[test]
fn a_key_goes_nowhere_that_others_can_read() {
    let result_for = |base: &str| {
        let settings = settings("acme/one", WireApi::Chat, base, KEY);
        HttpModel::new(settings).map(drop)
    };
    let invalid = |base: &str, why| {
        Err(HttpModelSettingsError::Base {
            base: base.into(),
            why,
        })
    };
    for base in [
        "https://example.com/v1",
        "http://localhost:4000",
        "http://10.0.0.7:8000/v1",
        "http://litellm:4000",
        "http://[::1]:11434",
    ] {
        assert_eq!(result_for(base), Ok(()), "{base}");
    }
    let open = "without `https://` the key could be read in transit";
    let user = "it must not contain a user name or password, the key comes from a variable";
    assert_eq!(
        result_for("http://example.com/v1"),
        invalid("http://example.com/v1", open)
    );
    assert_eq!(
        result_for("https://me:pw@example.com/"),
        invalid("https://example.com/", user)
    );
    assert_eq!(
        result_for("ftp://example.com/"),
        invalid(
            "ftp://example.com/",
            "it must begin with `https://` or `http://`"
        )
    );
    assert_eq!(result_for("nowhere"), invalid("nowhere", "not a URL"));
    let mut settings = settings(
        "acme/one",
        WireApi::Chat,
        "https://example.com",
        "two\nlines",
    );
    settings.temperature = None;
    assert_eq!(
        HttpModel::new(settings).map(drop),
        Err(HttpModelSettingsError::Key {
            variable: "TEST_API_KEY".into()
        })
    );
}
