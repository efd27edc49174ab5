//! Answers and raised budgets, after which a run continues.

use serde_json::json;

use super::{asking_run, below};
use crate::support::{TestProject, TestServer, finishing_reply, reply};

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_continues_the_run() {
    let (server, run) = asking_run().await;
    let empty = server
        .post(&below(&run, "/answer"), &json!({"text": ""}))
        .await
        .expect(422);
    assert!(
        empty.json()["detail"]
            .as_str()
            .unwrap()
            .contains("the answer is empty")
    );
    server
        .post(&below(&run, "/answer"), &json!({"text": "port 8080"}))
        .await
        .expect(200);
    server.wait_for_status(&run, "succeeded").await;
    let iteration = server.get_json(&below(&run, "/iterations/2")).await;
    let prompt = iteration["prompt"]["text"].as_str().unwrap();
    assert!(prompt.contains("the answer: port 8080"), "{prompt}");
    let audit = server.get_json(&below(&run, "/audit")).await;
    assert_eq!(audit["green"], true, "{audit}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_raised_budget_continues_a_failed_run() {
    let project = TestProject::new();
    let task = project.repo().join("ralph_task.md");
    let text = std::fs::read_to_string(&task).unwrap();
    std::fs::write(
        &task,
        text.replace("max_iterations: 5", "max_iterations: 1"),
    )
    .unwrap();
    let write = json!({"type": "write", "path": "a.txt", "content": "one\n"});
    project.write_script(&[reply(&[write]), finishing_reply()]);
    let server = TestServer::start_for(project).await;
    let run = server.start_run().await;
    server.wait_for_status(&run, "failed").await;
    let attention = server.get_json(&below(&run, "/attention")).await;
    assert_eq!(attention["items"][0]["kind"], "budget");
    let path = below(&run, "/continue");
    for body in [
        json!({"max_iterations": 1}),
        json!({"max_tokens": 1_000}),
        json!({"max_iterations": 0}),
        json!({"max_cost_usd": -1}),
    ] {
        server.post(&path, &body).await.expect(422);
    }
    server
        .post(&path, &json!({"max_iterations": 3}))
        .await
        .expect(200);
    let details = server.wait_for_status(&run, "succeeded").await;
    assert_eq!(details["budgets"]["iterations"]["limit"], 3);
    server.stop().await;
}
