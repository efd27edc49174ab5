//! Tests of the fake upstream over its socket.

use std::io::{Read, Write};
use std::net::TcpStream;

use ralph_core::ports::TokenUsage;
use serde_json::{Value, json};

use super::{FakeUpstream, ScenarioStep, UpstreamScenario};

/// Sends a request on its own connection and returns the status line and the rest.
fn send(upstream: &FakeUpstream, head: &str, body: &str) -> (String, String) {
    let mut connection = TcpStream::connect(upstream.address()).unwrap();
    let length = body.len();
    let request =
        format!("{head}\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
    connection.write_all(request.as_bytes()).unwrap();
    let mut response = Vec::new();
    // A connection broken on purpose may end with an error.
    let _read: std::io::Result<usize> = connection.read_to_end(&mut response);
    let response = String::from_utf8(response).unwrap();
    let (status, rest) = response.split_once("\r\n").unwrap();
    (status.to_owned(), rest.to_owned())
}

fn response_json(response: &str) -> Value {
    let (_, body) = response.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap()
}

const PATHS: [&str; 3] = ["/v1/messages", "/v1/responses", "/v1/chat/completions"];

#[test]
fn unstreamed_responses_are_one_object() {
    let usage = TokenUsage {
        input_tokens: 50,
        output_tokens: 7,
        cache_read_tokens: 20,
        cache_write_tokens: 5,
        ..TokenUsage::default()
    };
    let upstream = FakeUpstream::start(UpstreamScenario::new([
        ScenarioStep::text("hello").with_usage(usage)
    ]));
    let objects = PATHS.map(|path| {
        let (status, rest) = send(
            &upstream,
            &format!("POST {path} HTTP/1.1"),
            "{\"model\":\"m\"}",
        );
        assert_eq!(status, "HTTP/1.1 200 OK");
        response_json(&rest)
    });
    let [messages, responses, chat] = &objects;
    assert_eq!(messages["content"][0]["text"], "hello");
    assert_eq!(
        messages["usage"],
        json!({"input_tokens": 25, "cache_creation_input_tokens": 5,
               "cache_read_input_tokens": 20, "output_tokens": 7})
    );
    assert_eq!(responses["output"][0]["content"][0]["text"], "hello");
    assert_eq!(responses["usage"]["total_tokens"], 57);
    assert_eq!(chat["choices"][0]["message"]["content"], "hello");
    assert_eq!(chat["usage"]["prompt_tokens_details"]["cached_tokens"], 20);
}

#[test]
fn streams_end_as_the_protocol_requires_unless_cut() {
    let upstream = FakeUpstream::start(UpstreamScenario::new([
        ScenarioStep::tool("shell", json!({"cmd": "ls"})),
        ScenarioStep::cut("hel"),
        ScenarioStep::fail("hel", 402, "ralph: spent"),
    ]));
    let lasts = ["message_stop", "response.completed", "[DONE]"];
    let failures = ["billing_error", "response.failed", "insufficient_quota"];
    for ((path, last), failure) in PATHS.iter().zip(lasts).zip(failures) {
        let request = || {
            send(
                &upstream,
                &format!("POST {path} HTTP/1.1"),
                "{\"stream\":true}",
            )
            .1
        };
        let (whole, cut, failed) = (request(), request(), request());
        assert!(whole.contains("text/event-stream"), "{whole}");
        assert!(whole.contains(r#"{\"cmd\":\"ls\"}"#), "{whole}");
        assert!(whole.contains(last), "{whole}");
        assert!(cut.contains("hel") && !cut.contains(last), "{cut}");
        assert!(
            failed.contains(failure) && failed.contains("ralph: spent"),
            "{failed}"
        );
    }
}

#[test]
fn other_requests_are_answered_and_recorded() {
    let rejected = ScenarioStep::error(429, "slow down").with_header("retry-after", "9");
    let upstream = FakeUpstream::start(UpstreamScenario::new([rejected]));
    let (status, rest) = send(&upstream, "POST /v1/messages?beta=true HTTP/1.1", "{}");
    assert_eq!(status, "HTTP/1.1 429 Too Many Requests");
    assert!(rest.contains("retry-after: 9"), "{rest}");
    assert_eq!(response_json(&rest)["error"]["type"], "rate_limit_error");
    let upgrade = "GET /v1/responses HTTP/1.1\r\nupgrade: websocket";
    assert_eq!(
        send(&upstream, upgrade, "").0,
        "HTTP/1.1 426 Upgrade Required"
    );
    let hello = "HEAD /api/hello HTTP/1.1";
    assert_eq!(send(&upstream, hello, "").0, "HTTP/1.1 200 OK");
    let other = "GET /v1/models HTTP/1.1";
    assert_eq!(send(&upstream, other, "").0, "HTTP/1.1 404 Not Found");
    let requests = upstream.requests();
    let lines: Vec<String> = requests
        .iter()
        .map(|request| format!("{} {}", request.method, request.path))
        .collect();
    assert_eq!(
        lines,
        [
            "POST /v1/messages?beta=true",
            "GET /v1/responses",
            "HEAD /api/hello",
            "GET /v1/models",
        ]
    );
    assert_eq!(upstream.model_requests(), requests[..1]);
}
