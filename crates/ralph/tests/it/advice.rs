//! Advice from the user and the doctor: notes, guardrails, reports, and the mode that allows it.

use std::fs;

use serde_json::{Value, json};

use crate::project::{Project, actions, control, finish, run};

/// A reply that only matches the doctor's prompt.
fn doctor(reply: &Value) -> Value {
    json!({"when": "You are the doctor of a Ralph loop", "reply": reply,
           "usage": {"input_tokens": 500, "output_tokens": 50}})
}

fn guardrail(name: &str) -> Value {
    json!({"name": name, "trigger": "before it fails", "instruction": "write one first", "evidence": "exit 3"})
}

fn report(edits: &Value) -> Value {
    doctor(&json!({
        "summary": "Nobody writes the file.",
        "patterns": ["the same question in iteration 1"],
        "root_causes": ["it is not said where"],
        "guardrails": [guardrail("one first")],
        "spec_edits": edits,
        "model_profile": "strong",
    }))
}

fn paused(project: Project, before: &[Value], after: &[Value]) -> Project {
    let question = actions(&[control("pause", "where?")]);
    let script: Vec<Value> = before
        .iter()
        .cloned()
        .chain([question])
        .chain(after.iter().cloned())
        .collect();
    let project = project.script(&script);
    project.run().expect(11);
    project
}

#[test]
fn a_note_needs_a_mode_that_allows_it_and_reaches_the_next_prompt() {
    let autonomous = Project::new().script(&[actions(&[run("sleep 600")])]);
    let live = autonomous.start();
    live.wait_for_event("action_started", 1);
    let ended = autonomous.ralph(&["note", "last", "use a.txt"]).expect(1);
    assert!(
        ended
            .stderr
            .contains("its mode is `autonomous`; notes need the mode `guided`"),
        "{}",
        ended.stderr
    );
    assert!(autonomous.file("notes.md").ends_with("(none)\n"));
    autonomous.ralph(&["stop", "last"]).expect(0);
    live.wait().expect(10);

    let project = paused(Project::new().set("mode", "guided"), &[], &[finish()]);
    let args = [
        "note",
        "last",
        "use\na.txt",
        "--kind",
        "file",
        "--author",
        "Ann",
    ];
    let ended = project.ralph(&args).expect(0);
    assert!(
        ended.stdout.contains("the note is in `notes.md`"),
        "{}",
        ended.stdout
    );
    let told = "### note: file\n- text: use a.txt\n- author: Ann\n- iteration: 1\n";
    assert!(project.file("notes.md").ends_with(told));
    project.ralph(&["resume", "last"]).expect(0);
    assert!(project.prompt(2).contains(told));
    assert_eq!(project.event_values("command_done", "done"), [json!(true)]);
    project.audit();
    assert!(
        project
            .ralph(&["replay", "last"])
            .expect(0)
            .stdout
            .contains("the note is in")
    );
}

#[test]
fn a_guardrail_is_added_in_every_mode_and_must_be_well_formed() {
    let project = paused(Project::new(), &[], &[finish()]);
    let args = [
        "guardrail",
        "last",
        "--name",
        "one first",
        "--trigger",
        "always",
        "--instruction",
        "write one",
    ];
    project.ralph(&args).expect(0);
    let told = "### sign: one first\n- trigger: always\n- instruction: write one\n\
                - added_after: iteration 1\n- evidence: none given\n";
    assert!(project.file("guardrails.md").ends_with(told));
    project.ralph(&["guardrail", "last", "free text"]).expect(2);
    project.ralph(&["resume", "last"]).expect(0);
    assert!(project.prompt(2).contains(told));
    // A run that has ended accepts no more advice.
    project.ralph(&args).expect(1);
    project.audit();
}

#[test]
fn a_live_run_accepts_notes_and_guardrails_between_iterations() {
    let mut slow = actions(&[run("true")]);
    slow["delay_ms"] = 2_000.into();
    let project = Project::new()
        .set("mode", "guided")
        .script(&[slow, finish()]);
    let live = project.start();
    live.wait_for_event("model_asked", 1);
    let note = std::thread::scope(|scope| {
        let note = scope.spawn(|| project.ralph(&["note", "last", "the second one"]));
        project
            .ralph(&[
                "guardrail",
                "last",
                "--name",
                "n",
                "--trigger",
                "t",
                "--instruction",
                "i",
            ])
            .expect(0);
        note.join().unwrap()
    });
    note.expect(0);
    live.wait().expect(0);
    assert!(project.prompt(2).contains("- text: the second one"));
    assert!(project.prompt(2).contains("### sign: n\n- trigger: t"));
    project.audit();
}

#[test]
fn a_diagnosis_is_shown_and_applied_with_one_command() {
    let edits = json!([
        {"find": "# Task: Make two files\n", "replace": "# Task: Make two files\n\nOne comes first.\n", "why": "order"},
        {"find": "max_iterations: 5", "replace": "max_iterations: 500", "why": "more room"},
    ]);
    let project = paused(Project::new(), &[report(&edits)], &[finish()]);
    let shown = project.ralph(&["diagnose", "last"]).expect(0).stdout;
    assert!(shown.contains("Nobody writes the file."), "{shown}");
    assert!(shown.contains("--apply` applies it"), "{shown}");
    assert!(
        project
            .file("diagnostics.md")
            .contains("### report 1 (after iteration 1, requested by the user")
    );
    assert!(!project.file("guardrails.md").contains("one first"));
    assert_eq!(project.show()["status"], "paused");
    let before = project.task_text();

    let applied = project
        .ralph(&["diagnose", "last", "--apply"])
        .expect(0)
        .stdout;
    assert!(
        applied.contains("1 guardrail, 1 edit of the task, profile `strong`"),
        "{applied}"
    );
    assert!(
        applied.contains("edit 2: the text to replace is not in the body"),
        "{applied}"
    );
    assert_eq!(project.events("doctor_asked").len(), 1);
    assert!(
        project
            .file("guardrails.md")
            .contains("### sign: one first\n")
    );

    project.ralph(&["resume", "last"]).expect(0);
    let changed = project.event_values("contract_changed", "contract");
    assert_eq!(changed.len(), 1);
    let kept = format!("contracts/{}.md", changed[0].as_str().unwrap());
    let task = fs::read_to_string(project.run_dir().join(kept)).unwrap();
    let expected = before.replace(
        "# Task: Make two files\n",
        "# Task: Make two files\n\nOne comes first.\n",
    );
    assert_eq!(task, expected);
    assert!(project.prompt(2).contains("One comes first."));
    assert!(project.prompt(2).contains("### sign: one first"));
    assert!(
        project
            .file("activity.log")
            .contains("now using profile `strong`")
    );
    project.audit();
}

#[test]
fn a_policy_applies_by_itself_what_cannot_weaken_the_task() {
    let edits = json!([
        {"find": "`grep -q one a.txt`", "replace": "`true`", "why": "it is too strict"},
        {"find": "", "replace": "Hint: one first.", "why": "order"},
    ]);
    let stuck = || actions(&[run("echo no >&2; exit 3")]);
    let script: Vec<Value> = std::iter::once(report(&edits))
        .chain((0..4).map(|_| stuck()))
        .chain([finish()])
        .collect();
    let project = Project::new().set("doctor_apply", "auto").script(&script);
    project.run().expect(0);
    let applied = &project.events("diagnosis_applied")[0];
    assert_eq!(applied["by"], "policy");
    assert_eq!(
        (&applied["signs"], &applied["edits"]),
        (&json!(1), &json!(1))
    );
    let refused = applied["refused"][0].as_str().unwrap();
    assert!(
        refused.contains("box M1.1 would lose a check; only the user can apply this edit"),
        "{refused}"
    );
    assert!(project.prompt(5).contains("Hint: one first."));
    assert!(project.prompt(5).contains("verify: `grep -q one a.txt`"));
    project.audit();
}

#[test]
fn a_doctor_that_cannot_be_read_is_asked_once_more_and_breaks_nothing() {
    let bad = doctor(&json!("I am not sure."));
    let project = paused(Project::new(), &[bad.clone(), bad], &[finish()]);
    let ended = project.ralph(&["diagnose", "last"]).expect(1);
    assert!(
        ended.stderr.contains("the doctor failed"),
        "{}",
        ended.stderr
    );
    assert_eq!(
        project.event_values("doctor_failed", "given_up"),
        [json!(false), json!(true)]
    );
    let prompt = fs::read_to_string(project.run_dir().join("doctor/1/prompt.md")).unwrap();
    assert!(prompt.contains("The reply to this prompt could not be read"));
    project.ralph(&["diagnose", "last", "--apply"]).expect(1);
    project.ralph(&["resume", "last"]).expect(0);
    project.audit();
}

#[test]
fn the_doctor_runs_at_its_interval() {
    let idle = || actions(&[run("true")]);
    let script = [
        report(&json!([])),
        idle(),
        idle(),
        report(&json!([])),
        idle(),
        idle(),
        finish(),
    ];
    let project = Project::new()
        .set("doctor_every", "2")
        .set("max_iterations", "6")
        .script(&script);
    project.run().expect(0);
    assert_eq!(
        project.event_values("doctor_reported", "iteration"),
        [json!(2), json!(4)]
    );
    assert_eq!(
        project.event_values("doctor_asked", "trigger"),
        [json!("routine"), json!("routine")]
    );
    project.audit();
}

#[test]
fn a_question_to_the_doctor_that_a_kill_cut_off_is_charged_and_asked_again() {
    let mut slow = report(&json!([]));
    slow["delay_ms"] = 60_000.into();
    let project =
        Project::new()
            .set("doctor_every", "1")
            .script(&[slow, actions(&[run("true")]), finish()]);
    let live = project.start();
    live.wait_for_event("doctor_asked", 1);
    live.signal(rustix::process::Signal::KILL);
    live.wait();
    project.write_script(&[report(&json!([])), actions(&[run("true")]), finish()]);
    project.ralph(&["resume", "last"]).expect(0);
    assert_eq!(project.events("doctor_abandoned").len(), 1);
    assert_eq!(
        project.event_values("doctor_asked", "attempt"),
        [json!(1), json!(2)]
    );
    assert_eq!(project.events("doctor_reported").len(), 1);
    project.audit();
}

#[test]
fn a_used_up_budget_prevents_doctor_calls() {
    let mut dear = report(&json!([]));
    dear["usage"] = json!({"input_tokens": 2_000_000, "output_tokens": 1});
    let project = paused(Project::new(), &[dear], &[finish()]);
    project.ralph(&["diagnose", "last"]).expect(0);
    assert_eq!(project.show()["tokens"]["input"], 2_000_010);
    project.ralph(&["diagnose", "last"]).expect(1);
    assert_eq!(project.events("doctor_asked").len(), 1);
    let why = project.event_values("doctor_failed", "why");
    assert_eq!(why, [json!("the budget `max_tokens_total` is used up")]);
    project.audit();
}

#[test]
fn debugging_knows_ids_of_the_contract_and_no_command_line() {
    let guided = paused(Project::new().set("mode", "guided"), &[], &[finish()]);
    let ended = guided.ralph(&["debug", "last", "test"]).expect(1);
    assert!(
        ended.stderr.contains("debugging needs the mode `debug`"),
        "{}",
        ended.stderr
    );

    let project = Project::new()
        .set("mode", "debug")
        .set("debug_commands", "{types: \"echo typed; exit 4\"}");
    let project = paused(project, &[], &[finish()]);
    let ids = project.ralph(&["debug", "last"]).expect(0).stdout;
    assert_eq!(ids, "test\ntypes\nlog-activity\nlog-errors\nlog-tests\n");
    let ended = project.ralph(&["debug", "last", "test"]).expect(0);
    assert!(
        ended.stdout.contains("`test -s base.txt`: exit 0"),
        "{}",
        ended.stdout
    );
    let ended = project.ralph(&["debug", "last", "types"]).expect(1);
    assert_eq!(ended.stdout, "typed\n");
    assert!(ended.stderr.contains("exit 4"), "{}", ended.stderr);
    let ended = project.ralph(&["debug", "last", "log-activity"]).expect(0);
    assert!(
        ended.stdout.contains("iteration 1 starts"),
        "{}",
        ended.stdout
    );
    for text in ["id", "echo hi", "test; id", "verify-1"] {
        project.ralph(&["debug", "last", text]).expect(2);
    }
    assert_eq!(project.events("command_done").len(), 3);
    project.ralph(&["resume", "last"]).expect(0);
    project.audit();
    for contract in fs::read_dir(project.run_dir().join("contracts")).unwrap() {
        fs::write(contract.unwrap().path(), "damaged").unwrap();
    }
    let ended = project.ralph(&["debug", "last", "test"]).expect(1);
    let message = "ralph: cannot read the contract of run `";
    assert!(ended.stderr.starts_with(message), "{}", ended.stderr);
}
