//! Runs of a server: the queue, requests for runs, and the end of the server.

mod isolation;
mod queue;
mod restart;
mod starting;

use serde_json::{Value, json};

use crate::support::{TestProject, TestServer, command_reply, finishing_reply};

/// Creates a project whose runs take a while.
fn slow_project() -> TestProject {
    let project = TestProject::new();
    project.write_script(&[command_reply("sleep 1"), finishing_reply()]);
    project
}

/// Starts another run of the task and returns its id.
async fn start_another(server: &TestServer) -> String {
    let mut body = server.project.new_run();
    body["unfinished_run"] = json!("new");
    let reply = server.post("/api/v1/runs", &body).await.expect(201);
    reply.json()["id"].as_str().unwrap().to_owned()
}

/// Returns the ids in a list of `/queue`.
async fn queue(server: &TestServer, list: &str) -> Vec<String> {
    let queue = server.get_json("/api/v1/queue").await;
    let ids = queue[list].as_array().unwrap().iter();
    ids.map(|id| id.as_str().unwrap().to_owned()).collect()
}

/// Returns the statuses that a run had.
fn statuses(project: &TestProject, run: &str) -> Vec<String> {
    let events = project.events(run).into_iter();
    let changes = events.filter(|event| event["type"] == "status_changed");
    changes
        .map(|event| {
            event["status"]["status"]
                .as_str()
                .or(event["status"].as_str())
                .unwrap()
                .to_owned()
        })
        .collect()
}

/// Waits until a run has an event of a type.
async fn wait_for_event(server: &TestServer, run: &str, kind: &str) {
    let has_event = |_: &Value| {
        let events = server.project.events(run);
        events.iter().any(|event| event["type"] == kind)
    };
    server.wait_for_run(run, kind, has_event).await;
}
