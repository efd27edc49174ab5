//! The baseline: the checks run at the base commit before any work.

use serde_json::json;

use crate::project::{Project, actions, control, finish};

const ON: &str = "{baseline: true}";

/// A task whose checks all pass before any work.
const GREEN: &str = "# Task: Keep the file\n\n- [ ] M1.1 There\n  - verify: `test -s base.txt`\n- [ ] M1.2 Right\n  - verify: `grep -q base base.txt`\n";

#[test]
fn all_green_before_any_work_is_nothing_to_do() {
    let project = Project::new()
        .set("verification", ON)
        .body(GREEN)
        .script(&[finish()]);
    let ended = project.run().expect(0);
    let base = project.git(&["rev-parse", "--short=10", "main"]);
    let reason = format!("nothing to do: every check is green at {base} before any work");
    assert!(
        ended.stdout.contains(&format!("succeeded — {reason}")),
        "{}",
        ended.stdout
    );
    let show = project.show();
    assert_eq!(
        (&show["status"], &show["reason"], &show["pr"]),
        (&json!("succeeded"), &json!(reason), &json!(null))
    );
    assert_eq!(show["iteration"], 0);
    assert!(project.events("model_asked").is_empty());
    assert!(project.events("pushed").is_empty());
    project.audit();
}

/// A green suite is no evidence for a box without a check.
#[test]
fn a_box_without_a_check_of_its_own_is_something_to_do() {
    let body = "# Task: Add the file\n\n- [ ] M1.1 Refactor\n- [ ] M1.2 Right\n  - verify: `grep -q base base.txt`\n";
    let project = Project::new()
        .set("verification", ON)
        .set("verify_commands", "[\"test -s base.txt\"]")
        .body(body)
        .script(&[actions(&[control("stop_failure", "enough")])]);
    project.run().expect(10);
    let green = json!(["M1.2", "verify_commands[0]", "test_command"]);
    assert_eq!(project.event_values("baseline_finished", "green"), [green]);
    assert_eq!(project.events("model_asked").len(), 1);
}

#[test]
fn checks_that_are_green_before_any_work_are_named() {
    let project = Project::new().set("verification", ON).script(&[finish()]);
    let ended = project.run().expect(0);
    assert_eq!(
        project.event_values("baseline_finished", "green"),
        [json!(["test_command"])]
    );
    let line = "before any work (1 of 3 checks): test_command";
    assert!(ended.stdout.contains(line), "{}", ended.stdout);
    let prompt = project.prompt(1);
    assert!(prompt.contains("Already green before any work"), "{prompt}");
    assert!(prompt.contains("do not prove that work was done: `test_command`."));
    // A red check is expected here, not an error of the model.
    assert!(!prompt.contains("clean room: `grep"), "{prompt}");
    project.audit();
}

#[test]
fn the_results_are_kept_for_the_next_run_from_the_same_commit() {
    let gave_up = || [actions(&[control("stop_failure", "enough")])];
    let project = Project::new().set("verification", ON).script(&gave_up());
    project.run_with(&["--new"]).expect(10);
    assert_eq!(
        project.event_values("baseline_finished", "cached"),
        [json!(false)]
    );
    assert_eq!(project.events("baseline_started").len(), 1);
    project.run_with(&["--new"]).expect(10);
    assert_eq!(
        project.event_values("baseline_finished", "cached"),
        [json!(true)]
    );
    assert!(project.events("baseline_started").is_empty());
    // A different commit or command requires a new baseline.
    project.commit("other.txt", "x\n");
    project.run_with(&["--new"]).expect(10);
    assert_eq!(
        project.event_values("baseline_finished", "cached"),
        [json!(false)]
    );
    let project = project.set("test_command", "grep -q base base.txt");
    project.run_with(&["--new"]).expect(10);
    assert_eq!(
        project.event_values("baseline_finished", "cached"),
        [json!(false)]
    );
    // Set-up can turn a red check green.
    let project = project.set("setup_command", "'true'");
    project.run_with(&["--new"]).expect(10);
    assert_eq!(
        project.event_values("baseline_finished", "cached"),
        [json!(false)]
    );
}

#[test]
fn a_baseline_can_be_switched_off() {
    let project = Project::new()
        .set("verification", "{baseline: false}")
        .script(&[finish()]);
    project.run().expect(0);
    assert!(project.events("baseline_started").is_empty());
    assert!(project.events("baseline_finished").is_empty());
    assert!(!project.prompt(1).contains("Already green"));
}
