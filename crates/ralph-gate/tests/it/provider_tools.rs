//! Providers do nothing outside the sandbox that the run does not allow.

use ralph_core::net::ProviderTool;
use ralph_core::secret::Secret;
use ralph_gate::{Gate, Route, SandboxListener};
use serde_json::{Value, json};

use crate::support::{GateTestbed, ReceivedBytes, body, header, send, status};

const RESPONSE: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

/// Starts a gate with a credential for each wire format and returns the bytes that the providers
/// receive.
async fn start_providers(allowed: &[ProviderTool]) -> (GateTestbed, Gate, ReceivedBytes) {
    let mut testbed = GateTestbed::new();
    testbed.provider_tools = allowed.iter().copied().collect();
    let received = testbed
        .start_tls_host("models.example:443", "models.example", RESPONSE)
        .await;
    let secret = || Secret::new("sk-real-0123456789".to_owned());
    let url = "https://models.example";
    testbed.routes = vec![
        Route::anthropic_compatible("anthropic", url, secret()).unwrap(),
        Route::openai_compatible("openai", url, secret()).unwrap(),
    ];
    let (gate, _) = testbed.build_gate();
    (testbed, gate, received)
}

/// Sends a model request with its placeholder token.
async fn post(gate: &Gate, path: &str, request: &Value) -> String {
    let name = path.split('/').nth(1).unwrap();
    let mut routes = gate.routes().iter();
    let placeholder = routes
        .find(|route| route.name() == name)
        .unwrap()
        .placeholder();
    let text = request.to_string();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{text}",
        placeholder.as_str(),
        text.len()
    );
    send(gate, SandboxListener::Credentials, request).await
}

fn image(url: &str) -> Value {
    json!({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "1", "content": [
            {"type": "image", "source": {"type": "url", "url": url}},
        ]},
    ]}]})
}

#[tokio::test]
async fn no_wire_lets_the_provider_fetch_urls() {
    let (testbed, gate, received) = start_providers(&[]).await;
    let url = "https://evil.example/?d=SECRET";
    let chat = json!({"model": "m", "messages": [{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": url}},
    ]}]});
    let responses = json!({"model": "m", "input": [
        {"type": "function_call_output", "call_id": "1", "output": [
            {"type": "input_file", "file_url": url},
        ]},
    ]});
    let servers =
        json!({"model": "m", "messages": [], "mcp_servers": [{"type": "url", "url": url}]});
    let tool = json!({"model": "m", "input": "x", "tools": [{"type": "mcp", "server_url": url}]});
    for (path, request, kind) in [
        ("/anthropic/v1/messages", image(url), "urls"),
        ("/anthropic/v1/messages/count_tokens", image(url), "urls"),
        ("/anthropic/v1/messages", servers, "mcp"),
        ("/openai/v1/chat/completions", chat, "urls"),
        ("/openai/v1/responses", responses.clone(), "urls"),
        ("/openai/v1/responses/compact", responses, "urls"),
        ("/openai/v1/responses", tool, "mcp"),
    ] {
        let response = post(&gate, path, &request).await;
        assert_eq!(status(&response), 400, "{path}: {response}");
        assert_eq!(
            header(&response, "x-ralph-gate"),
            Some("provider-tool"),
            "{path}"
        );
        let error: Value = serde_json::from_str(body(&response)).unwrap();
        let message = error["error"]["message"].as_str().unwrap();
        assert!(
            message.contains(&format!("does not allow `{kind}`")),
            "{message}"
        );
        assert!(!message.contains("SECRET"), "{message}");
    }
    assert_eq!(received.text(), "", "the provider received nothing");
    let audits = testbed.sink.audits.lock().unwrap();
    let details: Vec<&str> = audits
        .iter()
        .filter_map(|it| it.detail.as_deref())
        .collect();
    assert_eq!(details[0], "refused a URL at `evil.example`");
    assert!(audits.iter().all(|audit| !audit.decision.is_allowed()));
}

#[tokio::test]
async fn provider_tools_are_removed_from_the_request_and_recorded() {
    let (testbed, gate, received) = start_providers(&[]).await;
    let request = json!({"model": "m", "max_tokens": 1, "messages": [], "tools": [
        {"type": "web_search_20250305", "name": "web_search"},
        {"name": "Bash", "input_schema": {"type": "object"}},
    ]});
    for _ in 0..2 {
        let response = post(&gate, "/anthropic/v1/messages", &request).await;
        assert_eq!(status(&response), 200, "{response}");
    }
    let sent = received.text();
    assert!(
        !sent.contains("web_search") && sent.contains("Bash"),
        "{sent}"
    );
    let decisions = testbed.sink.wait_for_decisions(4).await;
    let removed = "credentials models.example:443 - provider-tool policy";
    assert_eq!(decisions.iter().filter(|it| *it == removed).count(), 2);
    let tools = testbed.sink.tools.lock().unwrap();
    assert_eq!(tools.len(), 1, "it is announced once");
    assert_eq!(tools[0].1.what, "the tool `web_search_20250305`");
}

#[tokio::test]
async fn allowed_kinds_pass_unchanged_and_are_recorded() {
    let (testbed, gate, received) = start_providers(&[ProviderTool::Urls]).await;
    let request = image("https://pictures.example/a.png");
    let response = post(&gate, "/anthropic/v1/messages", &request).await;
    assert_eq!(status(&response), 200, "{response}");
    assert!(received.text().contains("https://pictures.example/a.png"));
    let decisions = testbed.sink.wait_for_decisions(2).await;
    let allowed = "credentials models.example:443 + provider-tool policy".to_owned();
    assert!(decisions.contains(&allowed), "{decisions:?}");
}
