//! Several tasks in one project, each with a script of its own.

use std::fs;

use serde_json::{Value, json};

use super::fixture::RunningServer;
use crate::project::Project;

/// A command that ends when `continue` exists in the user's repository.
pub(super) fn waiting_command(project: &Project) -> String {
    let file = project.repo().join("continue");
    format!("until [ -e {} ]; do sleep 0.05; done", file.display())
}

/// Ends the waiting commands of all runs.
pub(super) fn let_commands_end(project: &Project) {
    fs::write(project.repo().join("continue"), "").unwrap();
}

/// Starts a server with this number of workers.
pub(super) fn serve(project: &Project, workers: &str) -> RunningServer {
    let mut command = project.command(&["serve", "--port", "0", "--json"]);
    command.env("RALPH_WORKERS", workers);
    RunningServer::start(command)
}

/// Returns the request for a run of a task file with a script of its own.
pub(super) fn request(project: &Project, file: &str, script: &[Value]) -> Value {
    let name = format!("{file}.jsonl");
    write_script(project, file, script);
    json!({
        "directory": project.repo(),
        "file": file,
        "model": format!("scripted:{}", project.path(&name).display()),
        "sandbox": "local",
        "unfinished_run": "new",
    })
}

/// Writes the script of a task file.
pub(super) fn write_script(project: &Project, file: &str, script: &[Value]) {
    let lines: Vec<String> = script.iter().map(Value::to_string).collect();
    fs::write(project.path(&format!("{file}.jsonl")), lines.join("\n")).unwrap();
}

/// Writes a task file that differs from the project's in its id and its test command.
pub(super) fn write_task(project: &Project, name: &str, test_command: &str) {
    let text = project
        .task_text()
        .replace("task_id: task", &format!("task_id: {name}"));
    let text = text.replace("test -s base.txt", test_command);
    fs::write(project.repo().join(format!("{name}.md")), text).unwrap();
}

/// Asserts that the independent audit finds nothing.
#[track_caller]
pub(super) fn audit(project: &Project, run: &str) {
    let ended = project.ralph(&["audit", run]);
    assert_eq!(ended.code, 0, "{run}: {}", ended.combined());
}
