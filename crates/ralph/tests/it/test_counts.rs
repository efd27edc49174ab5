//! Test counts: failures reported by a runner are red regardless of the exit code, and skipped
//! tests are shown with the counts.

use serde_json::json;

use crate::project::{Project, claiming, commit, work, write};

/// A script that prints a summary and exits 0.
fn prints(summary: &str) -> String {
    format!("printf '%s\\n' '{summary}'\n")
}

#[test]
fn exit_0_with_reported_failures_is_red_in_the_clean_room() {
    let project = Project::new();
    project.commit("t.sh", &prints("3 passed, 0 failed"));
    let project = project.set("test_command", "sh t.sh").script(&[
        claiming(
            &["M1.1", "M1.2"],
            &[
                &[write("t.sh", &prints("== 2 failed, 1 passed in 0.12s =="))],
                work().as_slice(),
            ]
            .concat(),
        ),
        claiming(
            &[],
            &[
                write(
                    "t.sh",
                    &prints("== 3 passed, 2 skipped, 1 xfailed in 0.12s =="),
                ),
                commit("Mend the tests"),
            ],
        ),
    ]);
    let ended = project.run().expect(0);
    let reason = "in the clean room: `sh t.sh` exited 0 but reports that 2 of 3 tests failed";
    assert_eq!(
        project.event_values("success_refused", "reasons"),
        [json!([reason])]
    );
    assert_eq!(
        project.event_values("verify_finished", "green"),
        [json!(false), json!(true)]
    );
    let counted = "3 passed, 2 skipped, 1 failed as expected";
    let last_block = ended.stdout.rsplit("succeeded").next().unwrap();
    assert!(last_block.contains(counted), "{}", ended.stdout);
    assert_eq!(
        project.show()["tests"],
        json!({"passed": 3, "failed": 0, "skipped": 2, "xfailed": 1})
    );
    let shown = project.ralph(&["show", "last"]).expect(0).stdout;
    assert!(shown.contains(counted), "{shown}");
    let pull = project.pull();
    let row = format!("| test_command | `sh t.sh` | exit 0, {counted} |");
    assert!(pull["body"].as_str().unwrap().contains(&row), "{pull}");
    project.audit();
}
