//! The result of a run: evidence, pull request, merge, discard and removal.

use hyper::Method;
use serde_json::json;

use super::{asking_run, below, finished_run};

#[tokio::test(flavor = "multi_thread")]
async fn a_verified_run_has_evidence_and_is_merged_and_removed() {
    let (server, run) = finished_run().await;
    let evidence = server.get_json(&below(&run, "/evidence")).await;
    let verdict = &evidence["verdicts"][0];
    assert_eq!(verdict["green"], true, "{evidence}");
    let commands: Vec<&str> = verdict["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| check["command"].as_str().unwrap())
        .collect();
    assert!(commands.contains(&"test -s base.txt"), "{commands:?}");
    let audit = server.get_json(&below(&run, "/audit")).await;
    assert_eq!(audit["green"], true, "{audit}");
    let pull = server.get_json(&below(&run, "/pull")).await;
    assert_eq!(
        (&pull["state"], &pull["base"]),
        (&json!("open"), &json!("main"))
    );
    assert!(pull["body"].as_str().unwrap().contains("M1.1"), "{pull}");
    let merged = server
        .post(&below(&run, "/merge"), &json!({}))
        .await
        .expect(200)
        .json();
    assert_eq!(merged["kind"], "fast_forward");
    assert_eq!(server.project.git(&["show", "main:a.txt"]), "one");
    let again = server
        .post(&below(&run, "/merge"), &json!({}))
        .await
        .expect(200)
        .json();
    assert_eq!(again["kind"], "already_merged");
    let removed = server.delete(&below(&run, "")).await.expect(200).json();
    assert_eq!(removed["run"], run.as_str());
    assert_eq!(server.get_json("/api/v1/runs").await["runs"], json!([]));
    server.get(&below(&run, "")).await.expect(404);
    server.delete(&below(&run, "")).await.expect(404);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_run_is_neither_merged_nor_removed_but_discarded() {
    let (server, run) = asking_run().await;
    server.get(&below(&run, "/pull")).await.expect(404);
    server
        .post(&below(&run, "/merge"), &json!({}))
        .await
        .expect(409);
    let kept = server.delete(&below(&run, "")).await.expect(409).json();
    assert!(kept["detail"].as_str().unwrap().contains(&run), "{kept}");
    server
        .delete(&below(&run, "?force=maybe"))
        .await
        .expect(400);
    server
        .post(&below(&run, "/stop"), &json!({}))
        .await
        .expect(200);
    server.wait_for_status(&run, "stopped").await;
    let request = server.request(Method::POST, &below(&run, "/discard"));
    let empty = http_body_util::Full::default();
    let discarded = server
        .send(request.body(empty).unwrap())
        .await
        .expect(200)
        .json();
    assert_eq!(
        discarded["sandboxes"].as_array().unwrap().len(),
        1,
        "{discarded}"
    );
    let details = server.get_json(&below(&run, "")).await;
    assert_eq!(details["status"], "stopped");
    server.delete(&below(&run, "")).await.expect(200);
    server.get(&below(&run, "")).await.expect(404);
    server.stop().await;
}
