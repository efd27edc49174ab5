//! Changes to existing tests: listed first in the pull request, and blocked if the task requires
//! that.

use serde_json::json;

use crate::project::{Project, actions, claiming, run, work, write};

const STRICT: &str = "def test_add():\n    assert add(1, 2) == 3\n    assert add(0, 0) == 0\n";
const WEAK: &str = "def test_add():\n    assert add(1, 2) == 3\n";

/// A project with a test, and a task with a policy for its changes.
fn project(policy: &str) -> Project {
    let project = Project::new();
    project.commit("tests/zz_test.py", STRICT);
    project.set("verification", &format!("{{on_test_change: {policy}}}"))
}

#[test]
fn a_weakened_test_is_listed_before_a_hundred_other_files() {
    let others = "mkdir -p tests/new .vscode; for i in $(seq 100); do echo x > tests/new/$i.py; done; echo '{}' > .vscode/settings.json";
    let changes = [run(others), write("tests/zz_test.py", WEAK)];
    let project = project("warn").script(&[claiming(
        &["M1.1", "M1.2"],
        &[&changes, &work()[..]].concat(),
    )]);
    let ended = project.run().expect(0);
    let change = "`tests/zz_test.py`: test weakened: 1 assertion removed";
    let pull = project.pull();
    let body = pull["body"].as_str().unwrap();
    let (_, list) = body.split_once("## Changes to review closely").unwrap();
    let lines: Vec<&str> = list.lines().filter(|line| line.starts_with("- ")).collect();
    assert_eq!(lines[0], format!("- {change}; test file"));
    assert!(
        lines[3].starts_with("- `.vscode/settings.json`: "),
        "{list}"
    );
    assert_eq!(lines.len(), 51, "{list}");
    let rest =
        "- and 54 more, none more important than these: 54 other files that the checks use; ";
    assert!(lines[50].starts_with(rest), "{}", lines[50]);
    // The same finding qualifies the success everywhere.
    let last_block = ended.stdout.rsplit("succeeded").next().unwrap();
    assert!(last_block.contains(change), "{}", ended.stdout);
    let finding = json!({"kind": "weakened_test", "text": change});
    let evidence = "the tests of the base commit pass on the new code";
    let evidence = json!({"kind": "old_tests_pass", "text": evidence});
    assert_eq!(project.show()["findings"], json!([finding, evidence]));
    project.audit();
}

#[test]
fn a_run_that_must_not_change_tests_has_to_restore_them() {
    let project = project("refuse").script(&[
        claiming(
            &["M1.1", "M1.2"],
            &[&[write("tests/zz_test.py", WEAK)], &work()[..]].concat(),
        ),
        actions(&[
            write("tests/zz_test.py", STRICT),
            crate::project::commit("Restore the test"),
        ]),
    ]);
    project.run().expect(0);
    let reason = "`tests/zz_test.py`: test weakened: 1 assertion removed — the task does not allow changes to existing tests, restore them";
    assert_eq!(
        project.event_values("success_refused", "reasons"),
        [json!([reason])]
    );
    assert!(project.prompt(2).contains(reason));
    assert_eq!(
        project.event_values("verify_finished", "green"),
        [json!(true)]
    );
    assert_eq!(project.delivered(), ["a.txt", "b.txt"]);
    project.audit();
}

#[test]
fn resuming_approves_exactly_the_changes_that_were_shown() {
    let project = project("pause").script(&[claiming(
        &["M1.1", "M1.2"],
        &[&[write("tests/zz_test.py", WEAK)], &work()[..]].concat(),
    )]);
    let paused = project.run().expect(11);
    let reason = "existing tests were changed: `tests/zz_test.py`: test weakened: 1 assertion removed — resuming the run approves exactly these changes";
    assert!(paused.stdout.contains(reason), "{}", paused.stdout);
    assert_eq!(project.show()["reason"], reason);
    assert_eq!(project.pull()["state"], "draft");
    // The script is used up: the model is not called again.
    project.ralph(&["resume", "last"]).expect(0);
    assert_eq!(project.events("test_changes_approved").len(), 1);
    assert_eq!(project.show()["iteration"], 1);
    assert_eq!(project.pull()["state"], "open");
    project.audit();
}

#[test]
fn new_tests_need_no_approval() {
    let more = format!("{STRICT}\ndef test_more():\n    assert add(2, 2) == 4\n");
    let changes = [
        write("tests/zz_test.py", &more),
        write("tests/new_test.py", WEAK),
    ];
    let project = project("pause").script(&[claiming(
        &["M1.1", "M1.2"],
        &[&changes, &work()[..]].concat(),
    )]);
    project.run().expect(0);
}
