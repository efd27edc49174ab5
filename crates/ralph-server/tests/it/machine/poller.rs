use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::support::{TestServer, WAIT_TIMEOUT};

async fn wait_for_state(server: &TestServer, state: &str) -> Value {
    let start = Instant::now();
    loop {
        let report = server.get_json("/api/v1/issues/poller").await;
        if report["state"] == state {
            return report;
        }
        assert!(start.elapsed() < WAIT_TIMEOUT, "{report}");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poller_without_a_source_host_reports_why() {
    let server = TestServer::start().await;
    let stopped = server.get_json("/api/v1/issues/poller").await;
    assert_eq!(stopped["state"], "stopped");
    let started = server.post("/api/v1/issues/poller/start", &json!({})).await;
    assert_eq!(started.expect(202).json()["interval_seconds"], 30);
    let failed = wait_for_state(&server, "failed").await;
    let problem = failed["problem"].as_str().unwrap();
    assert!(problem.contains("has no issues"), "{problem}");
    let stopped = server.post("/api/v1/issues/poller/stop", &json!({})).await;
    stopped.expect(202);
    let listed = server.get("/api/v1/issues").await;
    assert_eq!(
        listed.expect(422).json()["type"],
        "urn:ralph:problem:invalid-request"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_settings_of_the_poller_are_rejected() {
    let server = TestServer::start().await;
    for body in [
        json!({"interval_seconds": 0}),
        json!({"workers": 17}),
        json!({"profile": "a", "model": "b"}),
        json!({"command": "id"}),
    ] {
        let reply = server.post("/api/v1/issues/poller/start", &body).await;
        assert!(
            matches!(reply.status.as_u16(), 400 | 422),
            "{}",
            reply.text()
        );
    }
    let report = server.get_json("/api/v1/issues/poller").await;
    assert_eq!(report["state"], "stopped");
}
