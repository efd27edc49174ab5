//! Commands to a run that no process works on: they need neither its model nor its key.

use std::fs;

use ralph_test::{FakeModelApi, FakeResponse};
use serde_json::json;

use crate::models;
use crate::project::{Project, actions, control};

/// Sends every command that needs no model, expects so many results, and ends the run.
fn steer(project: &Project, results: usize) {
    let guardrail = [
        "guardrail",
        "last",
        "--name",
        "n",
        "--trigger",
        "t",
        "--instruction",
        "i",
    ];
    let commands: [&[&str]; 4] = [
        &["note", "last", "use a.txt"],
        &guardrail,
        &["message", "last", "use a.txt"],
        &["debug", "last", "log-activity"],
    ];
    for command in commands {
        project.ralph(command).expect(0);
    }
    let done = project.event_values("command_done", "done");
    assert_eq!(done, vec![json!(true); results]);
    let task = project.task_text() + "\nA sentence.\n";
    fs::write(project.task(), task).unwrap();
    project.ralph(&["task", "last"]).expect(0);
    project.ralph(&["stop", "last"]).expect(0);
    assert_eq!(project.show()["status"], "stopped");
    project.audit();
}

#[test]
fn a_paused_run_is_steered_without_its_script() {
    let project = Project::new()
        .set("mode", "debug")
        .script(&[actions(&[control("pause", "where?")])]);
    project.run().expect(11);
    fs::remove_file(project.path("replies.jsonl")).unwrap();
    let ended = project.ralph(&["diagnose", "last"]).expect(2);
    assert!(ended.stderr.contains("replies.jsonl"), "{}", ended.stderr);
    steer(&project, 4);
}

#[test]
fn a_paused_run_is_steered_without_its_key() {
    let api = FakeModelApi::start([FakeResponse::json(403, "{}")]).unwrap();
    let project = models::project_at(&api.url()).set("mode", "debug");
    project.ralph(&["run"]).expect(11);
    let project = project.without_env("ACME_API_KEY");
    project.ralph(&["profile", "last", "file"]).expect(0);
    // The iteration is still open, so the guardrail waits for the next one.
    steer(&project, 3);
    assert_eq!(api.received().len(), 1);
}
