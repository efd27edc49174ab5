//! The contract: only the user changes it, and its budgets are enforced.

use std::fs;

use serde_json::{Value, json};

use crate::project::{Project, actions, commit, control, finish, run, write};

/// An iteration that produces a change but completes nothing.
fn step(number: usize) -> Value {
    actions(&[write("step.txt", &format!("{number}\n"))])
}

fn texts(values: &[Value]) -> Vec<&str> {
    values.iter().map(|value| value.as_str().unwrap()).collect()
}

#[test]
fn iterations_are_counted_exactly() {
    let project = Project::new().set("max_iterations", "3").script(&[
        step(1),
        actions(&[run(
            "sed -i 's/max_iterations: 3/max_iterations: 9/' ralph_task.md",
        )]),
        step(3),
    ]);
    let ended = project.run().expect(10);
    assert!(
        ended
            .stdout
            .contains("the budget `max_iterations` is used up"),
        "{}",
        ended.stdout
    );
    let show = project.show();
    assert_eq!(
        (&show["status"], &show["iteration"]),
        (&json!("failed"), &json!(3))
    );
    assert_eq!(show["reason"], "the budget `max_iterations` is used up");
    assert_eq!(project.events("iteration_finished").len(), 3);
    project.audit();
    let again = project.ralph(&["resume", "last"]).expect(1);
    assert!(
        again.stderr.starts_with("ralph: cannot resume run "),
        "{}",
        again.stderr
    );
}

#[test]
fn warnings_come_before_the_end() {
    // One commit per iteration: a run without any progress counts as circling.
    let step = |number| actions(&[write("step.txt", &format!("{number}\n")), commit("Step")]);
    let script: Vec<Value> = (0..20).map(step).collect();
    let project = Project::new().set("max_iterations", "20").script(&script);
    project.run().expect(10);
    let warnings: Vec<Value> = project
        .events("budget_warning")
        .into_iter()
        .map(|event| json!([event["budget"], event["percent"]]))
        .collect();
    assert_eq!(
        warnings,
        [json!(["iterations", 80]), json!(["iterations", 95])]
    );
    assert_eq!(project.show()["iteration"], 20);
}

#[test]
fn tokens_are_spent_before_the_next_call_only() {
    let mut dear = actions(&[write("c.txt", "c\n"), run("echo never")]);
    dear["usage"] = json!({"input_tokens": 900, "output_tokens": 200});
    let project = Project::new()
        .set("max_tokens_total", "1000")
        .script(&[dear, finish()]);
    project.run().expect(10);
    assert_eq!(project.events("model_asked").len(), 1);
    assert_eq!(
        project.show()["reason"],
        "the budget `max_tokens_total` is used up"
    );
    // Actions of a paid reply that were not started are skipped.
    assert_eq!(project.results(1), ["skipped", "skipped"]);
    let warned = project.event_values("budget_warning", "percent");
    assert_eq!(warned, [json!(95)]);
    project.audit();
}

#[test]
fn the_end_of_the_wall_time_cuts_a_command() {
    let project = Project::new().set("max_wall_time_minutes", "1").script(&[
        actions(&[control("pause", "wait")]),
        actions(&[run("echo begun; sleep 50; echo over")]),
        finish(),
    ]);
    project.run().expect(11);
    // Simulates most of the minute: the journal's last record contains the active time.
    let path = project.run_dir().join("journal.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let (head, last) = text.trim_end().rsplit_once('\n').unwrap();
    let mut last: Value = serde_json::from_str(last).unwrap();
    last["active_ms"] = 57_000.into();
    fs::write(&path, format!("{head}\n{last}\n")).unwrap();
    let ended = project.ralph(&["resume", "last"]).expect(10);
    assert!(ended.stdout.contains("timed out"), "{}", ended.stdout);
    assert!(
        ended
            .stdout
            .contains("the budget `max_wall_time_minutes` is used up"),
        "{}",
        ended.stdout
    );
    let output = project.artifact(2, "test_output.txt");
    assert!(
        output.contains("\nbegun\n") && !output.contains("\nover"),
        "{output}"
    );
    assert_eq!(project.show()["iteration"], 2);
    project.audit();
}

#[test]
fn the_user_changes_the_task_of_a_live_run_by_a_command() {
    let waiting = actions(&[run("while [ ! -e ../go ]; do sleep 0.05; done; rm ../go")]);
    let project = Project::new().set("max_iterations", "2").script(&[
        waiting.clone(),
        waiting.clone(),
        waiting,
        finish(),
    ]);
    let live = project.start();
    let go = |iteration: usize| {
        live.wait_for_event("action_started", iteration);
        fs::write(project.sandbox().join("../go"), "").unwrap();
        live.wait_for_event("iteration_finished", iteration);
    };
    live.wait_for_event("action_started", 1);
    let text = project.task_text();
    let change = |from: &str, to: &str| {
        fs::write(project.task(), text.replace(from, to)).unwrap();
        project.ralph(&["task", "last"])
    };
    let accepted = change("max_iterations: 2", "max_iterations: 6").expect(0);
    assert!(
        accepted.stdout.starts_with("  max_iterations: 2 → 6\nrun ")
            && accepted
                .stdout
                .ends_with(": task accepted; it applies from the next iteration on\n"),
        "{}",
        accepted.stdout
    );
    go(1);
    live.wait_for_event("action_started", 2);
    // An invalid change is rejected immediately: the old contract remains.
    let unusable = change("max_iterations: 2", "max_iteration: 9").expect(12);
    assert!(
        unusable.stderr.contains("did you mean"),
        "{}",
        unusable.stderr
    );
    let fixed = change("task_id: task", "task_id: other").expect(2);
    assert!(
        fixed
            .stderr
            .contains("`task_id` cannot change while a run is under way"),
        "{}",
        fixed.stderr
    );
    go(2);
    go(3);
    live.wait().expect(0);
    assert_eq!(
        project.event_values("contract_changed", "changes"),
        [json!(["max_iterations: 2 → 6"])]
    );
    assert_eq!(project.events("contract_rejected"), Vec::<Value>::new());
    assert!(project.prompt(2).contains("iteration 2 of at most 6"));
    assert!(project.prompt(4).contains("iteration 4 of at most 6"));
    project.audit();
}

#[test]
fn an_edited_file_alone_changes_nothing() {
    let project = Project::new().set("max_iterations", "3").script(&[
        actions(&[control("pause", "how much more?")]),
        actions(&[control("pause", "and now?")]),
        finish(),
    ]);
    project.run().expect(11);
    let copy = project.run_dir().join("ralph_task.md");
    let text = fs::read_to_string(&copy).unwrap();
    let raised = text.replace("max_iterations: 3", "max_iterations: 9");
    fs::write(&copy, &raised).unwrap();
    fs::write(project.task(), &raised).unwrap();
    project.ralph(&["resume", "last"]).expect(11);
    assert_eq!(project.events("contract_changed"), Vec::<Value>::new());
    let notices = project.event_values("notice", "message");
    let notices = texts(&notices);
    assert!(
        notices
            .iter()
            .any(|text| text.contains("was edited, which has no effect"))
            && notices.iter().any(|text| {
                text.contains("the edit is not in force (max_iterations: 3 → 9): if it is yours, ")
            }),
        "{notices:?}"
    );
    assert_eq!(fs::read_to_string(&copy).unwrap(), text);
    let aside = project.run_dir().join("ralph_task.rejected.md");
    assert_eq!(fs::read_to_string(&aside).unwrap(), raised);
    assert!(project.prompt(2).contains("iteration 2 of at most 3"));
    // The user accepts it; no process works on the run, so the next one applies it.
    project.ralph(&["task", "last"]).expect(0);
    project.ralph(&["resume", "last"]).expect(0);
    assert_eq!(
        project.event_values("contract_changed", "changes"),
        [json!(["max_iterations: 3 → 9"])]
    );
    assert!(project.prompt(3).contains("iteration 3 of at most 9"));
    let again = project.ralph(&["task", "last"]).expect(1);
    assert!(
        again.stderr.contains("it has succeeded"),
        "{}",
        again.stderr
    );
    project.audit();
}

#[test]
fn a_pinned_contract_that_was_changed_is_an_error() {
    let project = Project::new()
        .set("max_iterations", "2")
        .script(&[actions(&[control("pause", "go on?")]), finish()]);
    project.run().expect(11);
    let kept: Vec<_> = fs::read_dir(project.run_dir().join("contracts"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(kept.len(), 1);
    let text = fs::read_to_string(&kept[0]).unwrap();
    fs::write(
        &kept[0],
        text.replace("max_iterations: 2", "max_iterations: 99"),
    )
    .unwrap();
    let refused = project.ralph(&["resume", "last"]).expect(11);
    let expected = format!(
        "the pinned contract `{}` does not match its digest in the journal",
        kept[0].display()
    );
    assert!(refused.stdout.contains(&expected), "{}", refused.combined());
    assert_eq!(project.events("iteration_started").len(), 1);
    fs::write(&kept[0], text).unwrap();
    project.ralph(&["resume", "last"]).expect(0);
}

/// A model that prefers easier tests and more money.
#[test]
fn a_command_cannot_impersonate_the_user() {
    let state = "$(dirname \"$(dirname \"$(dirname \"$PWD\")\")\")";
    let raise = format!(
        "for file in {state}/runs/*/ralph_task.md {state}/runs/*/contracts/*.md; do \
         sed -i 's/max_iterations: 2/max_iterations: 9/' \"$file\" && echo raised; done; \
         for box in {state}/runs/*/commands; do echo '{{\"id\":\"1\",\"command\":\"stop\"}}' > \"$box/1.json\" && echo sent; done; \
         ls {state}; true"
    );
    let project = Project::new().set("max_iterations", "2").script(&[
        actions(&[run(&raise)]),
        actions(&[write("step.txt", "2\n")]),
        finish(),
    ]);
    project.run().expect(10);
    let output = project.artifact(1, "actions.jsonl");
    assert!(
        !output.contains("raised\\n") && !output.contains("sent\\n"),
        "{output}"
    );
    assert_eq!(project.events("contract_changed"), Vec::<Value>::new());
    assert_eq!(project.events("command_received"), Vec::<Value>::new());
    assert_eq!(project.show()["iteration"], 2);
    project.audit();
}

#[test]
fn a_command_cannot_write_the_users_own_configuration() {
    let project = Project::new();
    let own = project.path("user/.config/ralph");
    let plant = format!(
        "mkdir -p {0}; echo 'profiles: {{}}' > {0}/models.yaml && echo planted; true",
        own.display()
    );
    let project = project.script(&[actions(&[run(&plant)]), finish()]);
    project.run().expect(0);
    let output = project.artifact(1, "actions.jsonl");
    assert!(!output.contains("planted\\n"), "{output}");
    assert!(!own.join("models.yaml").exists());
}

#[test]
fn a_command_cannot_kill_ralph() {
    let project = Project::new().script(&[
        actions(&[run(
            "kill -9 $PPID; kill -9 $(pgrep -x ralph); echo survived",
        )]),
        finish(),
    ]);
    project.run().expect(0);
    assert!(project.artifact(1, "actions.jsonl").contains("survived"));
    assert_eq!(project.events("run_opened").len(), 1);
}

#[test]
fn the_plan_says_what_is_kept_from_commands() {
    let project = Project::new().script(&[finish()]);
    let plan = project
        .ralph(&["run", "--dry-run", "--model", &project.model()])
        .expect(0);
    for text in [
        "local · no isolation: commands run as you",
        "state directory hidden: yes (mount namespace) · private /tmp: yes · ralph safe from signals: yes",
        "memory 8 GiB · 512 processes",
    ] {
        assert!(plan.stdout.contains(text), "{}", plan.stdout);
    }
    let checked = project.ralph(&["preflight"]);
    assert!(
        checked
            .stdout
            .contains("state directory hidden: yes (mount namespace)"),
        "{}",
        checked.combined()
    );
}
