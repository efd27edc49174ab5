//! The test command verifies a box without a check of its own.

use std::fs;

use serde_json::json;

use super::{has_line, project};
use crate::project::{claiming, commit, run, write};

#[test]
fn what_init_writes_plans_and_runs_unchanged() {
    let project = project();
    project.ralph(&["init"]).expect(0);
    project.write_script(&[claiming(
        &["T1"],
        &[write("a.txt", "one\n"), commit("Add the file")],
    )]);
    let plan = project.run_with(&["--dry-run"]).expect(0);
    assert!(plan.stdout.contains("sh test.sh"), "{}", plan.stdout);
    project.run().expect(0);
    assert_eq!(project.delivered(), ["a.txt"]);
    project.audit();

    // The task is done: the next run has nothing to do.
    project.git(&["merge", "--quiet", "ralph/make-the-tests-pass/work"]);
    let output = project.run().expect(0);
    assert!(output.stdout.contains("nothing to do"), "{}", output.stdout);
}

#[test]
fn the_test_command_verifies_a_box_without_its_own_check() {
    let project = project();
    let sentence = "Create `a.txt`";
    project.ralph(&["init", "-p", sentence]).expect(0);
    assert!(has_line(&project, "- [ ] T1 Create `a.txt`"));
    assert!(has_line(&project, "Goal: Create `a.txt`"));
    project.write_script(&[
        claiming(&["T1"], &[write("b.txt", "two\n"), commit("Another file")]),
        claiming(&["T1"], &[write("a.txt", "one\n"), commit("The file")]),
    ]);
    project.run().expect(0);
    let claims = project.events("claim_checked");
    let verified: Vec<bool> = claims
        .iter()
        .map(|claim| claim["verified"].as_bool().unwrap())
        .collect();
    assert_eq!(verified, [false, true]);
    for claim in &claims {
        assert_eq!(claim["checkbox"], "T1");
        assert_eq!(claim["checks"][0]["name"], "T1");
        assert_eq!(claim["checks"][0]["command"], "sh test.sh");
    }
    let verdict = project.events("verify_finished");
    assert_eq!(verdict[0]["checks"][0]["name"], "test_command");
    assert_eq!(project.show()["status"], "succeeded");
    project.audit();
}

#[test]
fn a_red_test_command_in_the_clean_room_reopens_a_box_without_its_own_check() {
    let project = project();
    project.commit(".gitignore", "a.txt\n");
    project.ralph(&["init", "-p", "Create the file"]).expect(0);
    project.write_script(&[
        // Git ignores the file, so that only the sandbox has it.
        claiming(
            &["T1"],
            &[
                run("echo one > a.txt"),
                write("b.txt", "two\n"),
                commit("Another file"),
            ],
        ),
        claiming(
            &["T1"],
            &[
                write(".gitignore", "\n"),
                write("a.txt", "one\n"),
                commit("The file"),
            ],
        ),
    ]);
    project.run().expect(0);
    let green = project.event_values("verify_finished", "green");
    assert_eq!(green, [json!(false), json!(true)]);
    let ticked = project.event_values("boxes_ticked", "ticked");
    assert_eq!(ticked, [json!(["T1"]), json!([]), json!(["T1"])]);
    project.audit();
}

#[test]
fn a_changed_test_command_reopens_the_boxes_that_it_verified() {
    let project = project();
    project.ralph(&["init", "-p", "Create the file"]).expect(0);
    project.write_script(&[
        claiming(
            &["T1"],
            &[
                write("a.txt", "one\n"),
                json!({"type": "pause", "reason": "look"}),
            ],
        ),
        claiming(&["T1"], &[write("b.txt", "two\n"), commit("Both files")]),
    ]);
    project.run().expect(11);
    assert_eq!(
        project.event_values("boxes_ticked", "ticked"),
        [json!(["T1"])]
    );
    let text = fs::read_to_string(project.task()).unwrap();
    fs::write(
        project.task(),
        text.replace("\"sh test.sh\"", "\"sh test.sh && test -s b.txt\""),
    )
    .unwrap();
    project.ralph(&["task", "last"]).expect(0);
    project.ralph(&["resume", "last"]).expect(0);
    let ticked = project.event_values("boxes_ticked", "ticked");
    assert_eq!(ticked, [json!(["T1"]), json!([]), json!(["T1"])]);
}
