//! The task of a run and its changes.

use hyper::Method;
use serde_json::{Value, json};

use super::{asking_run, below};
use crate::support::{HttpReply, TestServer};

async fn put(server: &TestServer, run: &str, version: Option<&str>, text: &str) -> HttpReply {
    let mut request = server.request(Method::PUT, &below(run, "/task"));
    if let Some(version) = version {
        request = request.header("if-match", version);
    }
    server.send_json(request, &json!({"text": text})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unconditional_stale_or_invalid_change_is_refused() {
    let (server, run) = asking_run().await;
    let read = server.get(&below(&run, "/task")).await.expect(200);
    let text = read.json()["text"].as_str().unwrap().to_owned();
    let version = read.header("etag").to_owned();
    let changed = text.replace("max_iterations: 5", "max_iterations: 7");
    put(&server, &run, None, &changed).await.expect(428);
    let stale = put(&server, &run, Some("\"0\""), &changed)
        .await
        .expect(412)
        .json();
    let diff = stale["diff"].as_str().unwrap();
    assert!(
        diff.contains("-max_iterations: 5\n+max_iterations: 7\n"),
        "{diff}"
    );
    let invalid = text.replace("max_iterations: 5", "max_iteration: 5");
    let findings = put(&server, &run, Some(&version), &invalid)
        .await
        .expect(422)
        .json();
    let first = &findings["findings"][0];
    assert!(
        first["line"].is_u64() && first["fix"].is_string(),
        "{findings}"
    );
    let fixed = text.replace("task_id: task", "task_id: other");
    let problem = put(&server, &run, Some(&version), &fixed)
        .await
        .expect(422)
        .json();
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("`task_id` cannot change"),
        "{problem}"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_task_applies_from_the_next_iteration_on() {
    let (server, run) = asking_run().await;
    let read = server.get(&below(&run, "/task")).await.expect(200);
    let text = read.json()["text"].as_str().unwrap().to_owned();
    let version = read.header("etag").to_owned();
    assert!(text.contains("max_iterations: 5"), "{text}");
    let changed = text.replace("max_iterations: 5", "max_iterations: 7");
    let same = put(&server, &run, Some(&version), &text)
        .await
        .expect(200)
        .json();
    assert_eq!(same["changes"], json!([]));
    let accepted = put(&server, &run, Some(&version), &changed)
        .await
        .expect(200)
        .json();
    assert_eq!(accepted["changes"], json!(["max_iterations: 5 → 7"]));
    let pending = server.get(&below(&run, "/task")).await.json();
    assert_eq!(pending["change_pending"], true);
    server
        .post(&below(&run, "/answer"), &json!({"text": "8080"}))
        .await
        .expect(200);
    let details = server.wait_for_status(&run, "succeeded").await;
    assert_eq!(details["budgets"]["iterations"]["limit"], 7);
    let after = server.get(&below(&run, "/task")).await.expect(200);
    assert!(
        after.json()["text"]
            .as_str()
            .unwrap()
            .contains("- [x] M1.1")
    );
    assert_ne!(after.header("etag"), version);
    let late = put(&server, &run, Some(after.header("etag")), &text)
        .await
        .expect(409)
        .json();
    assert!(
        late["allowed"] == Value::Null || late["allowed"] == json!([]),
        "{late}"
    );
    server.stop().await;
}
