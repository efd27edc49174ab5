use serde_json::{Value, json};

use crate::support::TestServer;

/// Waits for the end of an operation.
async fn wait_for_end(server: &TestServer, started: &Value) -> Value {
    let path = format!(
        "/api/v1/operations/{}?wait=60",
        started["id"].as_str().unwrap()
    );
    for _ in 0..3 {
        let operation = server.get_json(&path).await;
        if operation["state"] != "running" {
            return operation;
        }
    }
    panic!("the operation does not end: {started}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preflight_reports_each_check() {
    let server = TestServer::start().await;
    let request = json!({
        "file": "ralph_task.md", "sandbox": "local",
        "model": server.project.new_run()["model"],
    });
    let started = server.post("/api/v1/preflight", &request).await;
    let ended = wait_for_end(&server, &started.expect(202).json()).await;
    let checks = ended["checks"].as_array().unwrap();
    let status = |name: &str| {
        let check = checks.iter().find(|check| check["name"] == name);
        check.map(|check| check["status"].as_str().unwrap().to_owned())
    };
    assert_eq!(status("git").as_deref(), Some("pass"), "{ended}");
    assert_eq!(status("task file").as_deref(), Some("pass"), "{ended}");
    assert_eq!(status("model").as_deref(), Some("pass"), "{ended}");
    let listed = server.get_json("/api/v1/operations").await;
    assert_eq!(listed["operations"][0]["id"], ended["id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selftest_uses_a_real_sandbox_and_removes_it() {
    let server = TestServer::start().await;
    let started = server
        .post("/api/v1/selftest", &json!({"type": "local"}))
        .await;
    let ended = wait_for_end(&server, &started.expect(202).json()).await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    let sandboxes = server.get_json("/api/v1/sandboxes").await;
    // The Docker Engine may have sandboxes of other state directories.
    for list in ["kept", "orphaned", "removed", "failed"] {
        let listed = sandboxes[list].as_array().unwrap();
        assert!(
            listed.iter().all(|entry| entry["provider"] != "local"),
            "{sandboxes}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_is_cancelled_and_leaves_no_sandbox() {
    let server = TestServer::start().await;
    let started = server
        .post("/api/v1/selftest", &json!({"type": "local"}))
        .await;
    let started = started.expect(202).json();
    let path = format!("/api/v1/operations/{}", started["id"].as_str().unwrap());
    server.delete(&path).await.expect(202);
    let ended = wait_for_end(&server, &started).await;
    // It may have ended before the request arrived.
    assert!(
        ["cancelled", "succeeded"].contains(&ended["state"].as_str().unwrap()),
        "{ended}"
    );
    let home = server.project.home();
    let left = std::fs::read_dir(home.join("sandboxes")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "{ended}");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_operations_are_rejected() {
    let server = TestServer::start().await;
    server.get("/api/v1/operations/op-99").await.expect(404);
    server.delete("/api/v1/operations/op-99").await.expect(404);
    for (path, body) in [
        ("selftest", json!({"type": "tart"})),
        ("selftest", json!({"type": "local", "command": "id"})),
        ("preflight", json!({"directory": "nowhere"})),
        ("disk/gc", json!({"older_than": "soon"})),
        ("sandboxes/prune", json!({"max_age": "x"})),
        ("images/build", json!({"agent": "../x"})),
        ("images/pull", json!({"image": "-v /:/host"})),
    ] {
        let reply = server.post(&format!("/api/v1/{path}"), &body).await;
        let status = reply.status.as_u16();
        assert!(
            matches!(status, 400 | 422),
            "{path}: {status} {}",
            reply.text()
        );
        assert_eq!(reply.header("content-type"), "application/problem+json");
    }
}
