//! Budgets on the command line: for a new run, and for one that goes on.

use serde_json::json;

use crate::project::{Project, actions, commit, control, finish, write};

/// A project whose run failed because its only iteration is used up.
fn out_of_iterations() -> Project {
    let project = Project::new().set("max_iterations", "1").script(&[
        actions(&[write("a.txt", "one\n")]),
        actions(&[write("b.txt", "two\n"), commit("Make both")]),
        finish(),
    ]);
    project.run().expect(10);
    project
}

#[test]
fn a_run_that_failed_on_a_budget_goes_on_with_a_higher_one() {
    let project = out_of_iterations();
    let sandbox = project.sandbox();
    let ended = project
        .ralph(&["continue", "last", "--max-iterations", "5"])
        .expect(0);
    assert!(ended.stdout.contains("succeeded"), "{}", ended.stdout);
    // The uncommitted file of the first iteration was still there.
    assert_eq!(project.delivered(), ["a.txt", "b.txt"]);
    let work = |event: &serde_json::Value| event["purpose"] == "work";
    let created = project.events("sandbox_created");
    assert_eq!(created.iter().filter(|event| work(event)).count(), 1);
    assert!(!sandbox.exists(), "a successful run removes its sandbox");
    let commands = project.event_values("command_received", "command");
    assert_eq!(commands[0]["limits"]["max_iterations"], 5);
    let limits = project.event_values("limits_changed", "limits");
    assert_eq!(limits[0]["max_iterations"], 5);
    assert_eq!(limits[0]["max_tokens"], 1_000_000);
    project.audit();
}

#[test]
fn a_run_without_its_sandbox_goes_on_from_its_last_commit() {
    let project = Project::new().set("max_iterations", "1").script(&[
        actions(&[write("a.txt", "one\n"), commit("Make one file")]),
        finish(),
    ]);
    project.run().expect(10);
    project
        .ralph(&["prune-sandboxes", "--max-age", "0s"])
        .expect(0);
    let ended = project
        .ralph(&["continue", "last", "--max-iterations", "3"])
        .expect(0);
    assert!(ended.stdout.contains("succeeded"), "{}", ended.stdout);
    project.audit();
}

#[test]
fn budgets_that_leave_nothing_to_spend_are_rejected() {
    let project = out_of_iterations();
    let before = project.journal().len();
    let none = project.ralph(&["continue", "last"]).expect(2);
    assert!(
        none.stderr
            .contains("the budget `max_iterations` is used up — raise it: `--max-iterations …`"),
        "{}",
        none.stderr
    );
    let same = project
        .ralph(&["continue", "last", "--max-iterations", "1"])
        .expect(2);
    assert!(
        same.stderr
            .contains("`max_iterations` would be used up: 1 of 1"),
        "{}",
        same.stderr
    );
    let other = project
        .ralph(&["continue", "last", "--max-cost", "9"])
        .expect(2);
    assert!(
        other.stderr.contains("no new limit is given for it"),
        "{}",
        other.stderr
    );
    for bad in [
        ["--max-iterations", "0"],
        ["--max-cost", "free"],
        ["--max-time", "0h"],
        ["--max-tokens", "-1"],
    ] {
        let args = [&["continue", "last"], &bad[..]].concat();
        let refused = project.ralph(&args).expect(2);
        assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
    }
    assert_eq!(project.journal().len(), before);
    project.audit();
}

#[test]
fn only_a_failure_of_a_budget_can_be_continued() {
    let project = Project::new().script(&[actions(&[control("stop_failure", "impossible")])]);
    project.run().expect(10);
    let refused = project
        .ralph(&["continue", "last", "--max-iterations", "9"])
        .expect(1);
    assert!(
        refused.stderr.contains("it has failed"),
        "{}",
        refused.stderr
    );
    let refused = project.ralph(&["continue", "last"]).expect(1);
    assert!(
        refused.stderr.contains("it has failed"),
        "{}",
        refused.stderr
    );
    project.audit();
}

#[test]
fn a_paused_run_goes_on_with_and_without_other_budgets() {
    let project = Project::new().script(&[
        actions(&[control("pause", "which way?")]),
        actions(&[control("pause", "and now?")]),
        finish(),
    ]);
    project.run().expect(11);
    project.ralph(&["continue", "last"]).expect(11);
    let ended = project
        .ralph(&["continue", "last", "--max-tokens", "2000000"])
        .expect(0);
    assert!(ended.stdout.contains("succeeded"), "{}", ended.stdout);
    let limits = project.event_values("limits_changed", "limits");
    assert_eq!(limits.len(), 1);
    assert_eq!(limits[0]["max_tokens"], 2_000_000);
    project.audit();
}

#[test]
fn flags_of_run_replace_the_budgets_of_the_task() {
    let project = Project::new().script(&[actions(&[write("a.txt", "one\n")]), finish()]);
    let flags = [
        "--max-iterations",
        "1",
        "--max-time",
        "90s",
        "--max-tokens",
        "5000",
    ];
    project.run_with(&flags).expect(10);
    let plan = project.event_values("run_created", "plan").remove(0);
    assert_eq!(plan["limits"]["max_iterations"], 1);
    assert_eq!(
        plan["limits"]["max_wall_time"],
        json!({"secs": 90, "nanos": 0})
    );
    assert_eq!(plan["limits"]["max_tokens"], 5_000);
    assert_eq!(
        project.show()["reason"],
        "the budget `max_iterations` is used up"
    );
    project.audit();

    let project = Project::new().script(&[actions(&[control("pause", "which way?")])]);
    project.run().expect(11);
    let refused = project
        .run_with(&["--resume", "--max-iterations", "9"])
        .expect(2);
    assert!(
        refused.stderr.contains("use `ralph continue"),
        "{}",
        refused.stderr
    );
    let unpriced = Project::new()
        .without("max_tokens_total")
        .set("max_cost_usd_estimate", "1");
    let args = ["run", "--model", "zai/no-such-model", "--max-cost", "5"];
    let refused = unpriced.ralph(&args);
    assert_ne!(refused.code, 0);
    let text = "`--max-cost` cannot be enforced — no price is known for model `zai/no-such-model`";
    assert!(refused.stderr.contains(text), "{}", refused.stderr);
}

#[test]
fn a_changed_task_file_keeps_the_budgets_of_the_command_line() {
    let project = Project::new().script(&[actions(&[control("pause", "which way?")]), finish()]);
    project.run_with(&["--max-iterations", "9"]).expect(11);
    let project = project.set("max_tokens_total", "2000000");
    project.ralph(&["task", "last"]).expect(0);
    project.ralph(&["resume", "last"]).expect(0);
    let limits = project.event_values("contract_changed", "limits");
    assert_eq!(limits[0]["max_iterations"], 9);
    assert_eq!(limits[0]["max_tokens"], 2_000_000);
    project.audit();
}
