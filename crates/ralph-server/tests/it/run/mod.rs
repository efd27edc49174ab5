//! Tests of the resources below `/runs/{id}`.

mod continuing;
mod debugging;
mod doctor;
mod editing;
mod files;
mod guidance;
mod iterations;
mod requests;
mod results;
mod tasks;

use serde_json::{Value, json};

use crate::support::{TestProject, TestServer, finishing_reply, reply};

/// Returns a path below a run.
fn below(run: &str, rest: &str) -> String {
    format!("/api/v1/runs/{run}{rest}")
}

/// An action of a model that asks the user.
fn question() -> Value {
    json!({"type": "pause", "reason": "which port?"})
}

/// Starts a server with a run that writes `a.txt`, asks a question, and finishes after the answer.
async fn asking_run() -> (TestServer, String) {
    let project = TestProject::new();
    let write = json!({"type": "write", "path": "a.txt", "content": "one\n"});
    project.write_script(&[reply(&[write, question()]), finishing_reply()]);
    paused_run(project).await
}

/// Starts a server with a run of the project, which pauses.
async fn paused_run(project: TestProject) -> (TestServer, String) {
    let server = TestServer::start_for(project).await;
    let run = server.start_run().await;
    server.wait_for_status(&run, "paused").await;
    (server, run)
}

/// Starts a server with a run that has succeeded.
async fn finished_run() -> (TestServer, String) {
    let server = TestServer::start().await;
    let run = server.start_run().await;
    server.wait_for_status(&run, "succeeded").await;
    (server, run)
}

async fn set_mode(server: &TestServer, run: &str, mode: &str) {
    let (path, body) = (below(run, "/mode"), json!({"mode": mode}));
    server.put(&path, &body).await.expect(200);
    let has_mode = |details: &Value| details["mode"] == mode;
    server.wait_for_run(run, mode, has_mode).await;
}

/// Returns the command of this name in the description of a run.
fn command<'a>(details: &'a Value, name: &str) -> &'a Value {
    let commands = details["commands"].as_array().unwrap();
    let mut commands = commands.iter();
    commands
        .find(|command| command["command"] == name)
        .unwrap_or_else(|| panic!("no command `{name}`: {details}"))
}
