//! Recording and replay of model responses.

use std::io::Write;
use std::sync::{Arc, Mutex};

use ralph_gate::{Cassette, ReplayPace, Route, SandboxListener};

use crate::credentials::{REAL_SECRET, placeholder, post, secret, start_provider};
use crate::support::{GateTestbed, body, header, send, status};

/// A file in memory.
#[derive(Clone, Default)]
struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_recorded_response_is_replayed() {
    let events = format!("event: ping\ndata: {{\"type\":\"ping\",\"key\":\"{REAL_SECRET}\"}}\n\n");
    let response = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{events}",
        events.len()
    );
    let buffer = SharedBuffer::default();
    let mut testbed = GateTestbed::new();
    testbed.cassette = Some(Cassette::record(buffer.clone()));
    let (gate, _) = start_provider(
        &mut testbed,
        Route::anthropic_key(secret()).unwrap(),
        &response,
    )
    .await;
    let auth = format!("x-api-key: {}", placeholder(&gate));
    let request = |auth: &str, text: &str| {
        let request_body = format!("{{\"model\":\"claude-haiku-4-5\",\"x\":\"{text}\"}}");
        post("/anthropic/v1/messages", auth, &request_body)
    };
    let first = send(&gate, SandboxListener::Credentials, request(&auth, "one")).await;
    assert_eq!(status(&first), 200);
    let recording = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
    assert!(
        recording.contains("[REDACTED:anthropic]") && !recording.contains(REAL_SECRET),
        "{recording}"
    );
    assert_eq!(recording.lines().count(), 1);

    for (pace, text) in [
        (ReplayPace::Immediate, "one"),
        (ReplayPace::AsRecorded, "another day"),
    ] {
        let mut testbed = GateTestbed::new();
        testbed.cassette = Some(Cassette::replay(&recording, pace).unwrap());
        testbed.routes = vec![Route::anthropic_key(secret()).unwrap()];
        let (gate, meter) = testbed.build_gate();
        let auth = format!("x-api-key: {}", placeholder(&gate));
        let again = send(&gate, SandboxListener::Credentials, request(&auth, text)).await;
        assert_eq!(header(&again, "content-type"), Some("text/event-stream"));
        assert_eq!(body(&again), body(&first));
        let exhausted = send(&gate, SandboxListener::Credentials, request(&auth, text)).await;
        assert_eq!(status(&exhausted), 404);
        assert_eq!(meter.spent().tokens, 0);
    }
}

#[test]
fn a_broken_cassette_names_the_line() {
    let error = Cassette::replay("\n{}\n", ReplayPace::Immediate)
        .err()
        .unwrap();
    assert_eq!(
        error.to_string(),
        "line 2 of the cassette is not a valid exchange"
    );
}
