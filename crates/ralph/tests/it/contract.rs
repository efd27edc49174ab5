//! The contract: only a person changes it, and its budgets hold.

use std::fs;

use serde_json::{Value, json};

use crate::project::{Project, actions, claiming, control, finish, run, work, write};

/// An iteration that leaves something new behind and nothing done.
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
    // What was paid for and not begun is not begun any more.
    assert_eq!(project.results(1), ["skipped", "skipped"]);
    let warned = project.told("budget_warning", "percent");
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
    // Most of the minute passes: the last record of the journal tells how much.
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
fn a_person_changes_the_task_file_of_a_live_run() {
    let waiting = actions(&[run("while [ ! -e ../go ]; do sleep 0.05; done; rm ../go")]);
    let project = Project::new().set("max_iterations", "2").script(&[
        waiting.clone(),
        waiting.clone(),
        waiting,
        finish(),
    ]);
    let live = project.start();
    let go = |iteration: usize| {
        live.until_event("action_started", iteration);
        fs::write(project.sandbox().join("../go"), "").unwrap();
        live.until_event("iteration_finished", iteration);
    };
    live.until_event("action_started", 1);
    let text = project.task_text();
    fs::write(
        project.task(),
        text.replace("max_iterations: 2", "max_iterations: 6"),
    )
    .unwrap();
    go(1);
    live.until_event("action_started", 2);
    // Unusable: the old one stays.
    fs::write(
        project.task(),
        text.replace("max_iterations: 2", "max_iteration: 9"),
    )
    .unwrap();
    go(2);
    live.until_event("action_started", 3);
    let third = text
        .replace("max_iterations: 2", "max_iterations: 7")
        .replace("task_id: task", "task_id: other");
    fs::write(project.task(), third).unwrap();
    go(3);
    live.end().expect(0);
    assert_eq!(
        project.told("contract_changed", "changes"),
        [json!(["max_iterations: 2 → 6"])]
    );
    let rejected = project.told("contract_rejected", "why");
    let rejected = texts(&rejected);
    assert_eq!(rejected.len(), 2, "{rejected:?}");
    assert!(
        rejected[0].contains("max_iteration") && rejected[0].contains("did you mean"),
        "{rejected:?}"
    );
    assert_eq!(
        rejected[1],
        "`task_id` cannot change while a run is under way"
    );
    assert!(project.prompt(2).contains("iteration 2 of at most 6"));
    assert!(project.prompt(4).contains("iteration 4 of at most 6"));
    project.audit();
}

#[test]
fn a_person_changes_the_runs_own_copy_while_it_waits() {
    let project = Project::new().set("max_iterations", "2").script(&[
        actions(&[control("pause", "how much more?")]),
        actions(&[control("pause", "and now?")]),
        claiming(&["M1.1"], &work()),
        finish(),
    ]);
    project.run().expect(11);
    let copy = project.run_dir().join("ralph_task.md");
    let text = fs::read_to_string(&copy).unwrap();
    // Unusable: it is put aside, and the old one stays in force and in its place.
    let broken = text.replace("max_iterations: 2", "max_iterations: many");
    fs::write(&copy, &broken).unwrap();
    project.ralph(&["resume", "last"]).expect(11);
    let rejected = project.told("contract_rejected", "why");
    assert!(
        rejected.len() == 1 && rejected[0].as_str().unwrap().contains("max_iterations"),
        "{rejected:?}"
    );
    assert_eq!(fs::read_to_string(&copy).unwrap(), text);
    let aside = project.run_dir().join("ralph_task.rejected.md");
    assert_eq!(fs::read_to_string(aside).unwrap(), broken);
    assert!(project.prompt(2).contains("iteration 2 of at most 2"));
    fs::write(
        &copy,
        text.replace("max_iterations: 2", "max_iterations: 8"),
    )
    .unwrap();
    project.ralph(&["resume", "last"]).expect(0);
    assert_eq!(
        project.told("contract_changed", "changes"),
        [json!(["max_iterations: 2 → 8"])]
    );
    assert!(project.prompt(3).contains("iteration 3 of at most 8"));
    // The ticks are on the changed copy.
    let ticked = fs::read_to_string(&copy).unwrap();
    assert!(
        ticked.contains("max_iterations: 8") && ticked.contains("- [x] M1.1"),
        "{ticked}"
    );
    project.audit();
}

#[test]
fn a_change_in_the_middle_of_an_iteration_outlives_its_ticks() {
    let slow = claiming(
        &["M1.1"],
        &[
            write("a.txt", "one\n"),
            run("while [ ! -e ../go ]; do sleep 0.05; done"),
        ],
    );
    let project = Project::new()
        .set("max_iterations", "1")
        .script(&[slow, finish()]);
    let live = project.start();
    live.until_event("action_started", 2);
    let copy = project.run_dir().join("ralph_task.md");
    let text = fs::read_to_string(&copy).unwrap();
    fs::write(
        &copy,
        text.replace("max_iterations: 1", "max_iterations: 4"),
    )
    .unwrap();
    fs::write(project.sandbox().join("../go"), "").unwrap();
    live.end().expect(0);
    assert_eq!(
        project.told("contract_changed", "changes"),
        [json!(["max_iterations: 1 → 4"])]
    );
    assert_eq!(project.show()["iteration"], 2);
    project.audit();
}
