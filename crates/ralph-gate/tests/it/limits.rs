//! Limits on the resources that a sandbox may use.

use std::time::{Duration, Instant};

use ralph_gate::{Arrival, SandboxListener};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{GateTestbed, OK_RESPONSE, connect, send, status};

const REQUEST_BODY: &str =
    "GET http://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn connections_are_limited_and_slow_ones_are_closed() {
    let mut testbed = GateTestbed::allowing(&["allowed.example"]);
    testbed.start_host("allowed.example:80", OK_RESPONSE).await;
    testbed.limits.connections = 20;
    testbed.limits.head_timeout = Duration::from_millis(300);
    let (gate, _) = testbed.build_gate();
    let (other, _) = testbed.build_gate();
    let mut slow = Vec::new();
    for _ in 0..200 {
        let mut stream = connect(&gate, Arrival::new(SandboxListener::Proxy));
        let start = b"GET http://allowed.example/ HTTP/1.1\r\nX-Slow: ";
        // Connections above the limit are closed at once.
        drop(stream.write_all(start).await);
        slow.push(stream);
    }
    // The gate of another sandbox is not affected.
    assert_eq!(
        status(&send(&other, SandboxListener::Proxy, REQUEST_BODY).await),
        200
    );
    for stream in &mut slow {
        let mut rest = Vec::new();
        let read = stream.read_to_end(&mut rest);
        let ended = tokio::time::timeout(Duration::from_mins(1), read).await;
        drop(ended.expect("it is closed"));
    }
    assert_eq!(
        status(&send(&gate, SandboxListener::Proxy, REQUEST_BODY).await),
        200
    );
    let decisions = testbed.sink.decisions();
    let refused = decisions
        .iter()
        .filter(|text| text.contains("limit-reached"))
        .count();
    assert_eq!(refused, 180);
}

#[tokio::test]
async fn request_heads_are_limited_in_bytes() {
    let mut testbed = GateTestbed::allowing(&["allowed.example"]);
    let received = testbed.start_host("allowed.example:80", OK_RESPONSE).await;
    testbed.limits.head_bytes = 16 * 1024;
    let (gate, _) = testbed.build_gate();
    for (fields, bytes, code) in [(1, 100, 200), (1, 20_000, 431), (200, 10, 431)] {
        let filler = format!("X-Filler: {}\r\n", "x".repeat(bytes)).repeat(fields);
        let request = REQUEST_BODY.replace("Connection", &format!("{filler}Connection"));
        assert_eq!(
            status(&send(&gate, SandboxListener::Proxy, request).await),
            code,
            "{fields} {bytes}"
        );
    }
    assert_eq!(received.connections(), 1);
}

#[tokio::test]
async fn idle_connections_are_closed() {
    let mut testbed = GateTestbed::allowing(&["quiet.example:99"]);
    testbed.start_host("quiet.example:99", "").await;
    testbed.limits.idle_timeout = Duration::from_millis(200);
    let (gate, _) = testbed.build_gate();
    let mut stream = crate::tls::open_tunnel(&gate, "quiet.example:99")
        .await
        .unwrap();
    stream.write_all(b"hello").await.unwrap();
    let mut rest = Vec::new();
    let read = stream.read_to_end(&mut rest);
    let ended = tokio::time::timeout(Duration::from_secs(5), read).await;
    drop(ended.expect("it is closed"));
    assert_eq!(rest, b"");
}

#[tokio::test]
async fn connections_are_limited_in_bytes() {
    let mut testbed = GateTestbed::allowing(&["big.example"]);
    let big = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n{}",
        "x".repeat(100_000)
    );
    testbed.start_host("big.example:80", &big).await;
    testbed.limits.connection_bytes = 50_000;
    let (gate, _) = testbed.build_gate();
    let request =
        "GET http://big.example/ HTTP/1.1\r\nHost: big.example\r\nConnection: close\r\n\r\n";
    let response = send(&gate, SandboxListener::Proxy, request).await;
    assert!(response.len() < 100_000, "{}", response.len());
}

/// Returns the resident memory of this process, in bytes.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    kib.unwrap().parse::<usize>().unwrap() * 1024
}

/// Sends a request without its last bytes and returns the response.
async fn send_incomplete_request(
    mut stream: tokio::io::DuplexStream,
    head: String,
    length: usize,
) -> String {
    let chunk = vec![b' '; 64 * 1024];
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut sent = 0;
    while sent + chunk.len() < length && stream.write_all(&chunk).await.is_ok() {
        sent += chunk.len();
    }
    let mut response = Vec::new();
    // A response may end with the connection.
    drop(stream.read_to_end(&mut response).await);
    String::from_utf8_lossy(&response).into_owned()
}

#[tokio::test]
async fn unfinished_requests_share_one_byte_budget() {
    const EACH: usize = 31 * 1024 * 1024;
    let mut testbed = GateTestbed::new();
    testbed.limits.body_timeout = Duration::from_secs(6);
    testbed.limits.memory_wait = Duration::from_secs(2);
    let max = testbed.limits.buffered_bytes;
    let route = ralph_gate::Route::openai(crate::credentials::secret()).unwrap();
    let (gate, _) = crate::credentials::start_provider(&mut testbed, route, OK_RESPONSE).await;
    let auth = format!(
        "Authorization: Bearer {}",
        crate::credentials::placeholder(&gate)
    );
    let small = crate::credentials::post(
        "/openai/v1/chat/completions",
        &auth,
        r#"{"model":"gpt-5","messages":[]}"#,
    );
    assert_eq!(
        status(&send(&gate, SandboxListener::Credentials, &small).await),
        200
    );
    let before = resident_bytes();
    let head = format!(
        "POST /openai/v1/chat/completions HTTP/1.1\r\nHost: x\r\n{auth}\r\nContent-Length: {EACH}\r\n\r\n"
    );
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..60 {
        let stream = connect(&gate, Arrival::new(SandboxListener::Credentials));
        clients.spawn(send_incomplete_request(stream, head.clone(), EACH));
    }
    let mut highest = 0;
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(1500) {
        tokio::time::sleep(Duration::from_millis(20)).await;
        highest = highest.max(resident_bytes().saturating_sub(before));
    }
    // A small request passes in the meantime.
    assert_eq!(
        status(&send(&gate, SandboxListener::Credentials, &small).await),
        200
    );
    let mut statuses = std::collections::BTreeMap::new();
    while let Some(response) = clients.join_next().await {
        *statuses.entry(status(&response.unwrap())).or_insert(0) += 1;
    }
    highest = highest.max(resident_bytes().saturating_sub(before));
    assert!(highest < max + (32 << 20), "{highest}");
    assert!(
        statuses.keys().all(|code| matches!(code, 408 | 503)),
        "{statuses:?}"
    );
    assert!(statuses[&503] >= 20, "{statuses:?}");
    assert_eq!(
        status(&send(&gate, SandboxListener::Credentials, &small).await),
        200
    );
}

#[tokio::test]
async fn a_body_that_stalls_is_refused() {
    let mut testbed = GateTestbed::new();
    testbed.limits.body_timeout = Duration::from_millis(200);
    let route = ralph_gate::Route::openai(crate::credentials::secret()).unwrap();
    let (gate, _) = crate::credentials::start_provider(&mut testbed, route, OK_RESPONSE).await;
    let auth = format!(
        "Authorization: Bearer {}",
        crate::credentials::placeholder(&gate)
    );
    let request = format!(
        "POST /openai/v1/chat/completions HTTP/1.1\r\nHost: x\r\n{auth}\r\nContent-Length: 100\r\n\r\n{{"
    );
    let response = send(&gate, SandboxListener::Credentials, request).await;
    assert_eq!(status(&response), 408, "{response}");
}
