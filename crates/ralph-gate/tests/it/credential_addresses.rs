//! Providers on explicitly configured private addresses.

use ralph_core::net::EgressPolicy;
use ralph_gate::{Arrival, Gate, Route, SandboxListener};

use crate::credentials::{placeholder, post, secret};
use crate::support::{GateTestbed, OK_RESPONSE, connect, header, send, start_host, status};

const REQUEST_BODY: &str = r#"{"model":"gpt-5","messages":[]}"#;

/// Sends one buffered and one streamed request to the provider.
async fn response_statuses(gate: &Gate) -> [u16; 2] {
    let auth = format!("Authorization: Bearer {}", placeholder(gate));
    let whole = post("/models/v1/chat/completions", &auth, REQUEST_BODY);
    let streamed =
        format!("GET /models/v1/models HTTP/1.1\r\nHost: x\r\n{auth}\r\nConnection: close\r\n\r\n");
    let whole = send(gate, SandboxListener::Credentials, whole).await;
    let streamed = send(gate, SandboxListener::Credentials, streamed).await;
    [status(&whole), status(&streamed)]
}

#[tokio::test]
async fn credential_addresses_accept_only_credential_requests() {
    let mut testbed = GateTestbed::new();
    testbed.policy = EgressPolicy::AllowAll;
    let (address, received) = start_host(
        OK_RESPONSE.into(),
        Some(testbed.acceptor("gateway.example")),
    )
    .await;
    testbed.map_name_for_credentials("gateway.example:443", address);
    // The owner of a name can point it to any address.
    for name in ["rebind.example:80", "rebind.example:443"] {
        testbed.map_name_unreachable(name, &[address]);
    }
    let route = Route::openai_compatible("models", "https://gateway.example/v1", secret()).unwrap();
    testbed.routes = vec![route];
    let (gate, _) = testbed.build_gate();

    let plain = "GET / HTTP/1.1\r\nHost: rebind.example\r\nConnection: close\r\n\r\n";
    let proxied = plain.replace("GET /", "GET http://rebind.example/");
    for (listener, request) in [
        (SandboxListener::Http, plain),
        (SandboxListener::Proxy, proxied.as_str()),
    ] {
        let response = send(&gate, listener, request).await;
        let refused = header(&response, "x-ralph-gate");
        assert_eq!(refused, Some("private-address"), "{listener:?}");
    }
    let tunnel = crate::tls::open_tunnel(&gate, "rebind.example:443").await;
    let refused = tunnel.unwrap_err();
    assert_eq!(header(&refused, "x-ralph-gate"), Some("private-address"));
    let stream = connect(&gate, Arrival::new(SandboxListener::Https));
    let tls = crate::tls::https_get(stream, testbed.roots(), "rebind.example", "rebind.example");
    assert!(tls.await.is_err());
    let decisions = testbed.sink.wait_for_decisions(4).await;
    assert_eq!(
        decisions,
        [
            "http rebind.example:80 - private-address gate",
            "proxy rebind.example:80 - private-address gate",
            "proxy rebind.example:443 - private-address gate",
            "https rebind.example:443 - private-address gate",
        ]
    );
    assert_eq!(received.connections(), 0);

    assert_eq!(response_statuses(&gate).await, [200, 200]);
}

#[tokio::test]
async fn unlisted_private_addresses_get_no_credential() {
    let mut testbed = GateTestbed::new();
    let (address, received) = start_host(
        OK_RESPONSE.into(),
        Some(testbed.acceptor("gateway.example")),
    )
    .await;
    testbed.map_name_unreachable("gateway.example:443", &[address]);
    let route = Route::openai_compatible("models", "https://gateway.example/v1", secret()).unwrap();
    testbed.routes = vec![route];
    let (gate, _) = testbed.build_gate();
    assert_eq!(response_statuses(&gate).await, [502, 502]);
    assert_eq!(received.connections(), 0);
}
