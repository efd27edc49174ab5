//! Answers to the questions of a run, its mode, and fresh iterations during a model call.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::project::{Project, actions, control, finish, run};

fn asking() -> Project {
    Project::new().script(&[actions(&[control("pause", "which port?")]), finish()])
}

#[test]
fn an_answer_reaches_the_next_prompt_and_continues_the_run() {
    let project = asking();
    let paused = project.run().expect(11);
    assert!(
        paused.stdout.contains(" TEXT` answers and continues it"),
        "{}",
        paused.stdout
    );
    let answered = project.ralph(&["answer", "port 8080"]).expect(0);
    assert!(
        answered.stdout.contains("the answer is queued"),
        "{}",
        answered.stdout
    );
    assert_eq!(project.show()["status"], "succeeded");
    let prompt = project.prompt(2);
    assert!(
        prompt.contains("an earlier session asked: which port?"),
        "{prompt}"
    );
    assert!(prompt.contains("the answer: port 8080"), "{prompt}");
    let command = &project.event_values("command_received", "command")[0];
    assert_eq!(*command, json!({"answer": {"text": "port 8080"}}));
    let late = project.ralph(&["answer", "task", "and 80"]).expect(1);
    assert!(late.stderr.contains("it has succeeded"), "{}", late.stderr);
    project.audit();
}

#[test]
fn a_run_that_asks_accepts_notes_and_messages_in_every_mode() {
    let project = asking();
    project.run().expect(11);
    project.ralph(&["note", "it is in config.toml"]).expect(0);
    project.ralph(&["message", "last", "not", "80"]).expect(0);
    project.audit();
    project
        .ralph(&["answer", "last", "use", "8080", "--detach"])
        .expect(0);
    let start = Instant::now();
    while project.show()["status"] != "succeeded" {
        assert!(
            start.elapsed() < Duration::from_mins(5),
            "{}",
            project.show()
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    let prompt = project.prompt(2);
    for text in ["it is in config.toml", "not 80", "the answer: use 8080"] {
        assert!(prompt.contains(text), "{text}: {prompt}");
    }
    project.audit();
}

#[test]
fn answers_without_a_question_or_text_are_refused() {
    let project = Project::new().script(&[actions(&[run("sleep 600")]), finish()]);
    let none = project.ralph(&["answer", "yes"]).expect(1);
    assert!(
        none.stderr.contains("there are no runs yet"),
        "{}",
        none.stderr
    );
    let live = project.start();
    live.wait_for_event("action_started", 1);
    let refused = project.ralph(&["answer", "yes"]).expect(1);
    assert!(
        refused.stderr.contains("it does not ask a question"),
        "{}",
        refused.stderr
    );
    let missing = project.ralph(&["answer", "last"]).expect(2);
    assert_eq!(
        missing.stderr,
        "ralph: missing <TEXT> — `ralph answer` requires it — see `ralph answer --help`\n"
    );
    project.ralph(&["answer"]).expect(2);
    project.ralph(&["stop"]).expect(0);
    live.wait().expect(10);
}

#[test]
fn a_mode_applies_from_the_next_iteration() {
    let project = Project::new().script(&[
        actions(&[run("until test -e go; do sleep 0.05; done; rm go")]),
        finish(),
    ]);
    let live = project.start();
    live.wait_for_event("action_started", 1);
    let refused = project.ralph(&["note", "hint"]).expect(1);
    assert!(
        refused
            .stderr
            .contains("its mode is `autonomous`; notes need the mode `guided`"),
        "{}",
        refused.stderr
    );
    let changed = project.ralph(&["mode", "guided"]).expect(0);
    assert!(
        changed.stdout.contains("from the next iteration on"),
        "{}",
        changed.stdout
    );
    project.ralph(&["mode", "last", "guided"]).expect(1);
    let wrong = project.ralph(&["mode", "guide"]).expect(2);
    assert!(
        wrong
            .stderr
            .contains("possible values: autonomous, guided, debug"),
        "{}",
        wrong.stderr
    );
    project.ralph(&["note", "hint"]).expect(1);
    assert_eq!(project.events("mode_changed"), Vec::<Value>::new());
    std::fs::write(project.sandbox().join("go"), "").unwrap();
    live.wait().expect(0);
    assert_eq!(project.event_values("mode_changed", "mode"), ["guided"]);
    project.audit();
}

#[test]
fn the_mode_of_a_waiting_run_changes_at_once() {
    let project = asking();
    project.run().expect(11);
    project.ralph(&["mode", "debug"]).expect(0);
    assert_eq!(project.event_values("mode_changed", "mode"), ["debug"]);
    project.audit();
    project.ralph(&["debug", "test"]).expect(0);
    project.ralph(&["resume"]).expect(0);
    project.audit();
}

#[test]
fn a_rotation_cancels_a_model_call() {
    let slow = json!({"reply": {"summary": "late", "actions": [run("true")]}, "delay_ms": 300_000});
    let project = Project::new().script(&[slow, finish()]);
    let live = project.start();
    live.wait_for_event("model_asked", 1);
    let start = Instant::now();
    let rotated = project.ralph(&["rotate"]).expect(0);
    assert!(
        rotated.stdout.contains("a model call is cancelled"),
        "{}",
        rotated.stdout
    );
    live.wait().expect(0);
    assert!(
        start.elapsed() < Duration::from_mins(4),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(
        project.event_values("iteration_finished", "outcome")[0],
        "rotated"
    );
    assert_eq!(
        project.events("model_abandoned").len(),
        1,
        "the call is charged"
    );
    assert_eq!(
        project.event_values("model_failed", "error"),
        ["cancelled: the user requested a fresh iteration"]
    );
    assert_eq!(project.show()["iteration"], 2);
    project.audit();
}
