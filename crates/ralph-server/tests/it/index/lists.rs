//! Lists of runs through the interface.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::support::{TestProject, TestServer, WAIT_TIMEOUT};

/// Waits until a list comes from an index that is up to date, and returns it.
async fn indexed(server: &TestServer) -> Value {
    let start = Instant::now();
    loop {
        let page = server.get_json("/api/v1/runs").await;
        if page["catching_up"].is_null() {
            return page;
        }
        assert!(start.elapsed() < WAIT_TIMEOUT, "not indexed: {page}");
        sleep(Duration::from_millis(20)).await;
    }
}

fn remove_index(project: &TestProject) {
    for name in ["index.db", "index.db-wal", "index.db-shm"] {
        let path = project.home().join(name);
        if path.exists() {
            fs::remove_file(path).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_listed_with_its_details_and_measurements() {
    let server = TestServer::start().await;
    let run = server.start_run().await;
    let started = server.get_json("/api/v1/runs").await;
    assert_eq!(started["runs"][0]["id"], json!(run));
    let mut details = server.wait_for_status(&run, "succeeded").await;
    // Lists do not say what may be done with each run, nor its place in the queue.
    for field in ["commands", "queue_position"] {
        details.as_object_mut().unwrap().remove(field);
    }
    let start = Instant::now();
    let page = loop {
        let page = server
            .get("/api/v1/runs?status=succeeded")
            .await
            .expect(200);
        if page.json()["runs"] == json!([details]) {
            break page.json();
        }
        assert!(start.elapsed() < WAIT_TIMEOUT, "{}", page.text());
        sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(page["next"], Value::Null);
    for none in [
        "status=failed,paused",
        "text=absent",
        "repo=/",
        "attention=true",
    ] {
        let page = server
            .get(&format!("/api/v1/runs?{none}"))
            .await
            .expect(200);
        assert_eq!(page.json()["runs"], json!([]), "{none}");
    }
    for all in [
        "text=MAKE%20TWO",
        "attention=false&limit=1",
        "status=succeeded",
    ] {
        let page = server.get(&format!("/api/v1/runs?{all}")).await.expect(200);
        assert_eq!(page.json()["runs"][0]["id"], json!(run), "{all}");
    }

    let path = format!("/api/v1/runs/{run}/measurements");
    let measurements = server.get_json(&path).await;
    assert_eq!(measurements["iterations"].as_array().unwrap().len(), 1);
    let first = &measurements["iterations"][0];
    assert_eq!(
        (&first["iteration"], &first["boxes_ticked"]),
        (&json!(1), &json!(2))
    );
    let unknown = server
        .get("/api/v1/runs/absent/measurements")
        .await
        .expect(404);
    assert_eq!(unknown.json()["type"], "urn:ralph:problem:unknown-run");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_request_for_a_list_is_rejected() {
    let server = TestServer::start().await;
    for (query, status) in [
        ("limit=0", 422),
        ("limit=1001", 422),
        ("limit=x", 400),
        ("status=done", 422),
        ("cursor=x", 422),
        ("attention=maybe", 400),
        ("colour=red", 400),
    ] {
        let reply = server.get(&format!("/api/v1/runs?{query}")).await;
        let problem = reply.expect(status).json();
        assert_eq!(problem["status"], json!(status), "{query}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_runs_are_listed_after_the_index_was_removed() {
    let server = TestServer::start().await;
    let run = server.start_run().await;
    server.wait_for_status(&run, "succeeded").await;
    let project = server.stop().await;
    remove_index(&project);

    let server = TestServer::start_for(project).await;
    let before = indexed(&server).await;
    assert_eq!(before["runs"][0]["id"], json!(run));
    // While it runs: every list is complete, and the index is built again.
    remove_index(&server.project);
    let start = Instant::now();
    while !server.project.home().join("index.db").exists() {
        let page = server.get_json("/api/v1/runs").await;
        assert_eq!(page["runs"], before["runs"]);
        assert!(
            start.elapsed() < WAIT_TIMEOUT,
            "the index is not built again"
        );
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(indexed(&server).await["runs"], before["runs"]);
    server.stop().await;
}
