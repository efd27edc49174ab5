//! The reported status of a run whose process is gone.

use std::fs;

use serde_json::{Value, json};

use super::resume_checks::kill_when;
use crate::crash_stage::{BRANCH, CrashStage};
use crate::script::short_script;

/// Starts a task with a slow model, and kills it while it waits.
fn interrupted() -> (CrashStage, String) {
    let mut slow = short_script();
    slow["delay_ms"] = 400.into();
    let stage = CrashStage::with_replies(&[slow]);
    kill_when(&stage, || {
        stage.shown().is_some() && stage.events().iter().any(|e| e["type"] == "model_asked")
    });
    let id = stage.shown().unwrap()["id"].as_str().unwrap().to_owned();
    (stage, id)
}

#[test]
fn an_interrupted_run_reports_how_to_resume() {
    let (stage, id) = interrupted();
    let reason =
        format!("the process that worked on it is gone — `ralph resume {id}` continues it");
    let listed: Value = serde_json::from_str(&stage.run(&["runs", "--json"]).stdout).unwrap();
    for shown in [&stage.shown().unwrap(), &listed[0]] {
        let status = (&shown["status"], &shown["reason"]);
        assert_eq!(status, (&json!("interrupted"), &json!(reason)));
    }
    let output = stage.run(&["run", "--model", "scripted:replies.jsonl"]);
    let why = format!(
        "ralph: run `{id}` of this task is interrupted — it has not finished — \
         continue it with `ralph resume {id}`, or start over with `ralph run --new`\n"
    );
    assert_eq!((output.code, output.stderr), (1, why));
    let output = stage.run(&["run", "--resume"]);
    assert_eq!(output.code, 0, "{output:?}");
    let shown = stage.shown().unwrap();
    let status = (&shown["id"], &shown["status"]);
    assert_eq!(status, (&json!(id), &json!("succeeded")));
}

#[test]
fn a_new_run_leaves_the_interrupted_one_alone() {
    let (stage, first) = interrupted();
    let journal = fs::read(stage.dir().journal()).unwrap();
    let output = stage.run(&["run", "--new", "--model", "scripted:replies.jsonl"]);
    assert_eq!(output.code, 0, "{output:?}");
    let second = stage.shown().unwrap();
    let branch = format!("{BRANCH}-v2");
    let status = (&second["status"], &second["branch"]);
    assert_eq!(status, (&json!("succeeded"), &json!(branch)));
    assert_eq!(fs::read(stage.run_dir(&first).journal()).unwrap(), journal);
    let output = stage.run(&["resume", &first]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(stage.commits(BRANCH), stage.commits(&branch));
}
