//! `POST /runs`: every form of a task, questions, previews and repeated requests.

use std::fs;

use hyper::Method;
use serde_json::{Value, json};

use super::{slow_project, start_another};
use crate::support::{HttpReply, TestServer};

async fn post_with_key(server: &TestServer, key: &str, body: &Value) -> HttpReply {
    let request = server.request(Method::POST, "/api/v1/runs");
    let request = request.header("Idempotency-Key", key);
    server.send_json(request, body).await
}

#[tokio::test]
async fn a_repeated_request_starts_one_run_also_after_a_restart() {
    let server = TestServer::start().await;
    let body = server.project.new_run();
    let created = post_with_key(&server, "key 1", &body).await.expect(201);
    let run = created.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(created.header("location"), format!("/api/v1/runs/{run}"));
    let repeated = post_with_key(&server, "key 1", &body).await.expect(200);
    assert_eq!(repeated.json()["id"], json!(run));
    let mut other = body.clone();
    other["budgets"] = json!({"max_iterations": 3});
    let refused = post_with_key(&server, "key 1", &other).await.expect(422);
    assert_eq!(refused.json()["type"], "urn:ralph:problem:other-body");
    server.wait_for_status(&run, "succeeded").await;

    let server = TestServer::start_for(server.stop().await).await;
    let repeated = post_with_key(&server, "key 1", &body).await.expect(200);
    assert_eq!(repeated.json()["id"], json!(run));
    post_with_key(&server, "", &body).await.expect(422);
    // A crash before the journal was created.
    fs::remove_dir_all(server.project.run_dir(&run)).unwrap();
    let again = post_with_key(&server, "key 1", &body).await.expect(201);
    assert_ne!(again.json()["id"], json!(run));
    server.stop().await;
}

#[tokio::test]
async fn a_question_names_the_field_that_answers_it() {
    let server = TestServer::start_for(slow_project()).await;
    let first = server.start_run().await;
    let path = format!("/api/v1/runs/{first}/pause");
    server.post(&path, &json!({})).await.expect(200);
    server.wait_for_status(&first, "paused").await;
    // Its process holds the run, so only a new one is possible.
    let mut body = server.project.new_run();
    server.post("/api/v1/runs", &body).await.expect(409);

    let server = TestServer::start_for(server.stop().await).await;
    server.wait_for_status(&first, "paused").await;
    let asked = server.post("/api/v1/runs", &body).await.expect(422).json();
    assert_eq!(asked["type"], "urn:ralph:problem:question");
    assert_eq!(asked["field"], "unfinished_run");
    assert_eq!(asked["question"]["run"], json!(first));
    body["unfinished_run"] = json!("resume");
    let resumed = server.post("/api/v1/runs", &body).await.expect(201).json();
    assert_eq!(resumed["id"], json!(first));
    server.wait_for_status(&first, "succeeded").await;
    let another = start_another(&server).await;
    assert_ne!(another, first);
    server.wait_for_status(&another, "succeeded").await;
    server.stop().await;
}

#[tokio::test]
async fn proposals_are_approved_by_their_digest() {
    let server = TestServer::start().await;
    // The task chooses another repository than the one that contains it.
    let other = server.project.path("other");
    let path = other.display().to_string();
    server.project.git(&["clone", "--quiet", ".", &path]);
    let file = server.project.repo().join("ralph_task.md");
    let text = fs::read_to_string(&file).unwrap();
    let line = format!("base_branch: main\nrepo_url: {path}");
    fs::write(&file, text.replace("base_branch: main", &line)).unwrap();
    let mut body = server.project.new_run();
    let asked = server.post("/api/v1/runs", &body).await.expect(422).json();
    assert_eq!(asked["field"], "answers.approved_proposals", "{asked}");
    let digest = asked["question"]["digest"].clone();
    assert!(
        !asked["question"]["proposals"]["pending"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    body["answers"] = json!({"approved_proposals": "0".repeat(64)});
    server.post("/api/v1/runs", &body).await.expect(422);
    body["answers"] = json!({"approved_proposals": digest});
    let run = server.post("/api/v1/runs", &body).await.expect(201).json();
    let run = run["id"].as_str().unwrap();
    server.wait_for_status(run, "succeeded").await;
    server.stop().await;
}

#[tokio::test]
async fn a_task_is_a_file_a_text_or_a_sentence() {
    let server = TestServer::start().await;
    let text = fs::read_to_string(server.project.repo().join("ralph_task.md")).unwrap();
    let mut body = server.project.new_run();
    let fields = body.as_object_mut().unwrap();
    fields.remove("file");
    fields.insert("repo".into(), json!(server.project.repo()));
    fields.insert("task".into(), json!(text));
    fields.insert("mode".into(), json!("guided"));
    let run = server.post("/api/v1/runs", &body).await.expect(201).json();
    let details = server
        .wait_for_status(run["id"].as_str().unwrap(), "succeeded")
        .await;
    assert_eq!(details["mode"], "guided");

    body["task"] = json!("no task");
    let refused = server.post("/api/v1/runs", &body).await.expect(422).json();
    assert_eq!(refused["type"], "urn:ralph:problem:task-rejected");
    body["file"] = json!("ralph_task.md");
    let refused = server.post("/api/v1/runs", &body).await.expect(422).json();
    assert_eq!(refused["field"], "task");
    body = json!({"status": "succeeded"});
    server.post("/api/v1/runs", &body).await.expect(422);
    let request = server.request(Method::POST, "/api/v1/runs");
    let request = request.header("content-type", "application/json");
    server
        .send(request.body("{".into()).unwrap())
        .await
        .expect(400);
    server.stop().await;
}

#[tokio::test]
async fn a_dry_run_returns_the_plan_with_everything_that_is_missing() {
    let server = TestServer::start().await;
    let mut body = server.project.new_run();
    body["dry_run"] = json!(true);
    body["model"] = json!("scripted:/missing.jsonl");
    let preview = server.post("/api/v1/runs", &body).await.expect(200).json();
    assert_eq!(preview["plan"]["task_id"], "task");
    assert_eq!(preview["missing"].as_array().unwrap().len(), 1, "{preview}");
    assert!(!server.project.home().join("runs").exists());
    server.stop().await;
}
