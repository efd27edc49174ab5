//! Interrupted commands.

use std::fs;

use serde_json::{Value, json};

use super::resume_checks::{audit, for_each, kill_when, resume_or_start};
use crate::crash_stage::{BRANCH, CrashStage};
use crate::script::{reply, short_script};

/// Returns an action that runs `first` and then hangs, and runs `second` the next time.
fn endless(first: &str, second: &str) -> Value {
    let command = format!(
        r#"if [ -e "$HOME/there" ]; then {second}; else {first}; touch "$HOME/there"; sleep 300; fi"#
    );
    json!({"type": "run", "command": command})
}

/// Kills a run during its endless command.
fn kill_endless(stage: &CrashStage) {
    let sandboxes = stage.sandboxes();
    kill_when(stage, || {
        let entries = fs::read_dir(&sandboxes).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.path().join("home/there"))
            .any(|there| there.exists())
    });
    // The command has lost its parent and still runs.
    assert_ne!(stage.processes(), [""; 0]);
}

/// Resumes a run to its success.
fn succeeds(stage: &CrashStage, case: &str) {
    resume_or_start(stage, case);
    audit(stage, case);
    assert_eq!(stage.shown().unwrap()["status"], "succeeded", "{case}");
    assert_eq!(stage.processes(), [""; 0], "{case}");
}

/// Returns a field of all events of a kind.
fn all(stage: &CrashStage, kind: &str, key: &str) -> Value {
    let events = stage.events();
    let found = events.iter().filter(|e| e["type"] == kind);
    found.map(|e| e[key].clone()).collect()
}

#[test]
fn a_command_is_killed_with_all_it_started_and_runs_again() {
    let first = r#"setsid sleep 300 & echo $! $$ >"$HOME/pids""#;
    // Prints the processes of the first attempt that still exist; a zombie does not count.
    let second = r#"for pid in $(cat "$HOME/pids"); do grep -q . /proc/$pid/cmdline && echo $pid; done; echo again"#;
    let wait = json!([endless(first, second)]);
    let stage = CrashStage::with_replies(&[reply("Wait", &wait, &[]), short_script()]);
    kill_endless(&stage);
    succeeds(&stage, "a command with a session of its own");
    let events = stage.events();
    let results: Vec<&str> = events
        .iter()
        .filter(|e| e["iteration"] == 1 && e["index"] == 0)
        .map(|e| e["result"].as_str().unwrap_or("begun"))
        .collect();
    assert_eq!(results, ["begun", "interrupted", "begun", "ran"]);
    let dir = stage.dir();
    let errors = fs::read_to_string(dir.file("errors.log")).unwrap();
    let message = "was interrupted by a restart and runs again";
    assert!(errors.contains(message), "{errors}");
    let lines = fs::read_to_string(dir.iteration(1).join("actions.jsonl")).unwrap();
    let line: Value = serde_json::from_str(&lines).unwrap();
    let outcome = (&line["result"], &line["stdout"]);
    assert_eq!(outcome, (&json!("ran"), &json!("again\n")));
}

/// Changes of an interrupted command to the repository do not block the run.
#[test]
fn a_repository_is_usable_again() {
    let cases = [
        (
            "touch .git/index.lock",
            vec!["Greet by name", "Draft"],
            json!([]),
        ),
        (
            "rm .git/HEAD",
            vec!["Greet by name", "Draft"],
            json!([".git"]),
        ),
    ];
    for_each(&cases, |(damage, subjects, tampering)| {
        let draft = json!([
            endless(damage, "true"),
            {"type": "write", "path": "draft.txt", "content": "Not yet.\n"},
            {"type": "commit", "message": "Draft"},
        ]);
        let stage = CrashStage::with_replies(&[reply("Draft", &draft, &[]), short_script()]);
        kill_endless(&stage);
        succeeds(&stage, damage);
        let log = stage.git(&["log", "--format=%s", &format!("main..{BRANCH}")]);
        assert_eq!(log.lines().collect::<Vec<_>>(), *subjects, "{damage}");
        assert_eq!(all(&stage, "tamper", "path"), *tampering, "{damage}");
    });
}

/// A redacted reply cannot be replayed; another reply must not continue it.
#[test]
fn a_reply_that_is_lost_is_not_continued_by_another() {
    let token = format!("ghp_{}", "x1".repeat(18));
    let actions = json!([
        {"type": "write", "path": "draft.txt", "content": "Not yet.\n"},
        endless(&format!("echo {token}"), "true"),
    ]);
    let stage = CrashStage::with_replies(&[reply("Tell", &actions, &[]), short_script()]);
    kill_endless(&stage);
    succeeds(&stage, "a reply with a secret");
    let outcomes = all(&stage, "iteration_finished", "outcome");
    assert_eq!(outcomes, json!(["unreadable", "stop_requested"]));
}
