//! Reuse and closing of connections to a provider.

use std::time::Duration;

use ralph_gate::{Route, SandboxListener};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::credentials::{placeholder, post, secret, start_provider};
use crate::support::{GateTestbed, OK_RESPONSE, body, send, status};

const REQUEST_BODY: &str = r#"{"model":"claude-haiku-4-5","messages":[]}"#;

#[tokio::test]
async fn connections_are_reused() {
    let mut testbed = GateTestbed::new();
    let route = Route::anthropic_key(secret()).unwrap();
    let (gate, received) = start_provider(&mut testbed, route, OK_RESPONSE).await;
    let request = post(
        "/anthropic/v1/messages",
        &format!("x-api-key: {}", placeholder(&gate)),
        REQUEST_BODY,
    );
    for _ in 0..3 {
        let response = send(&gate, SandboxListener::Credentials, &request).await;
        assert_eq!(
            (status(&response), received.connections()),
            (200, 1),
            "{response}"
        );
    }
}

#[tokio::test]
async fn a_closed_idle_connection_fails_no_request() {
    let mut testbed = GateTestbed::new();
    let acceptor = testbed.acceptor("api.anthropic.com");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    testbed.map_name("api.anthropic.com:443", listener.local_addr().unwrap());
    let (closed_sender, mut closed) = tokio::sync::mpsc::channel::<()>(1);
    // The host answers once per connection and then closes it without notice.
    let host = tokio::spawn(async move {
        for _ in 0..3 {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = acceptor.accept(stream).await.unwrap();
            let (mut request, mut chunk) = (Vec::new(), [0; 4096]);
            while !request.ends_with(REQUEST_BODY.as_bytes()) {
                let count = stream.read(&mut chunk).await.unwrap();
                request.extend_from_slice(&chunk[..count]);
            }
            stream.write_all(OK_RESPONSE.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
            closed_sender.send(()).await.unwrap();
        }
    });
    testbed.routes = vec![Route::anthropic_key(secret()).unwrap()];
    let (gate, _) = testbed.build_gate();
    let auth = format!("x-api-key: {}", placeholder(&gate));
    let request = post("/anthropic/v1/messages", &auth, REQUEST_BODY);
    for _ in 0..3 {
        let response = send(&gate, SandboxListener::Credentials, &request).await;
        assert!(
            status(&response) == 200 && body(&response).contains("ok"),
            "{response}"
        );
        closed.recv().await.unwrap();
        // Wait until the close has arrived.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    host.await.unwrap();
}
