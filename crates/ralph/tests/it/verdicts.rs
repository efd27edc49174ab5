//! No false green: claims are checked, success is granted in a clean room or rejected with a
//! reason.

use std::fs;

use serde_json::{Value, json};

use crate::project::{
    Project, actions, claiming, commit, commit_paths, control, finish, run, work, write,
};

/// A reply that reports success after these actions.
fn done(boxes: &[&str], with: &[Value]) -> Value {
    claiming(boxes, &[with, &[control("stop_success", "done")]].concat())
}

/// Returns the reasons of all rejected successes, in order.
fn refusals(project: &Project) -> Vec<Vec<String>> {
    let reasons = project.event_values("success_refused", "reasons");
    reasons
        .into_iter()
        .map(|list| serde_json::from_value(list).unwrap())
        .collect()
}

/// Returns the rejected claims: the box and the reason.
fn claims(project: &Project) -> Vec<(String, String)> {
    project
        .events("claim_checked")
        .iter()
        .map(|event| {
            (
                event["checkbox"].as_str().unwrap().into(),
                event["why"].as_str().unwrap().into(),
            )
        })
        .collect()
}

fn pair(id: &str, why: &str) -> (String, String) {
    (id.into(), why.into())
}

#[test]
fn a_claim_is_ticked_only_when_it_holds() {
    let mut lofty = claiming(&["M1.1", "M9.9"], &[write("b.txt", "two\n")]);
    lofty["reply"]["claims"]["milestones_completed"] = json!(["M1", "M7"]);
    let project = Project::new().script(&[lofty, claiming(&["M1.2"], &[]), finish()]);
    project.run().expect(0);
    assert_eq!(
        claims(&project),
        [
            pair("M1.1", "`grep -q one a.txt`: exit 2"),
            pair("M9.9", "the task has no checkbox `M9.9`"),
            pair("M1", "milestone `M1` still has open boxes"),
            pair("M7", "the task has no milestone `M7`"),
            pair("M1.2", ""),
            pair("M1.1", ""),
        ]
    );
    let prompt = project.prompt(2);
    assert!(
        prompt.contains("box M1.1 was claimed but is not ticked: `grep -q one a.txt`: exit 2"),
        "{prompt}"
    );
    assert!(prompt.contains("- [ ] M1.2") && project.prompt(3).contains("- [x] M1.2"));
    // The user's own file is not ticked.
    assert!(!fs::read_to_string(project.task()).unwrap().contains("[x]"));
    project.audit();
}

#[test]
fn a_test_run_without_tests_is_not_green() {
    let body = "# Task: T\n\n- [ ] M1.1 Tests pass\n  - verify: `sh t.sh`\n- [ ] M1.2 There\n  - verify: `test -s t.sh`\n";
    let project = Project::new().body(body).script(&[
        claiming(
            &["M1.1", "M1.2"],
            &[
                write("t.sh", "echo '0 passed, 0 failed'\n"),
                commit("Nothing"),
            ],
        ),
        claiming(
            &["M1.1"],
            &[
                write("t.sh", "echo '3 passed, 0 failed'\n"),
                commit("Something"),
            ],
        ),
    ]);
    project.run().expect(0);
    let found = claims(&project);
    assert_eq!(found[1], pair("M1.2", ""));
    assert_eq!(found[2], pair("M1.1", ""));
    assert!(
        found[0].0 == "M1.1" && found[0].1.contains("ran no test"),
        "{found:?}"
    );
}

#[test]
fn success_is_refused_until_everything_holds() {
    let leftover = [
        write("a.txt", "one\n"),
        write("b.txt", "two\n"),
        write(".gitignore", "a.txt\n"),
        commit("All but one"),
    ];
    let project = Project::new().set("max_iterations", "9").script(&[
        done(&[], &[]),
        done(&["M1.1", "M1.2"], &leftover),
        done(&["M1.1"], &[]),
        done(
            &["M1.1"],
            &[
                run("git add -f a.txt; git rm -q --cached .gitignore; rm .gitignore"),
                write("c.txt", "x\n"),
            ],
        ),
        done(&[], &[commit("The rest")]),
    ]);
    project.run().expect(0);
    let refused = refusals(&project);
    assert_eq!(
        refused,
        [
            vec![
                "2 boxes are open: `M1.1`, `M1.2`".to_owned(),
                "the branch has no commits".into()
            ],
            vec!["in the clean room: `grep -q one a.txt`: exit 2".into()],
            vec!["in the clean room: `grep -q one a.txt`: exit 2".into()],
            vec!["3 files have uncommitted changes: `.gitignore`, `a.txt`, `c.txt`".into()],
        ]
    );
    // Each reason is in the next prompt, and only there.
    for (index, reasons) in refused.iter().enumerate() {
        let prompt = project.prompt(u32::try_from(index).unwrap() + 2);
        assert!(
            reasons
                .iter()
                .all(|why| prompt.contains(&format!("- {why}"))),
            "{prompt}"
        );
    }
    assert_eq!(
        project.event_values("verify_finished", "green"),
        [json!(false), json!(false), json!(true)]
    );
    assert!(
        !project
            .prompt(5)
            .contains("clean room: `grep -q one a.txt`: exit 2\n- ")
    );
    let head = project.show()["head"].as_str().unwrap().to_owned();
    assert_eq!(
        project.git(&["rev-parse", "ralph/task/make-two-files"]),
        head
    );
    assert_eq!(project.pull()["commit"], head);
    project.audit();
}

#[test]
fn a_green_commit_ends_the_run_without_being_asked() {
    let project = Project::new().script(&[
        claiming(
            &["M1.1", "M1.2"],
            &[write("a.txt", "one\n"), write("b.txt", "two\n")],
        ),
        actions(&[commit("Both")]),
        actions(&[run("echo never")]),
    ]);
    project.run().expect(0);
    assert_eq!(project.show()["iteration"], 2);
    // After the first, only the commit is missing, and the reason says so.
    let missing = [
        "2 files have uncommitted changes: `a.txt`, `b.txt`",
        "the branch has no commits",
    ];
    assert_eq!(
        project.event_values("success_refused", "reasons"),
        [json!(missing)]
    );
    project.audit();
}

#[test]
fn control_actions_end_an_iteration_and_perhaps_the_run() {
    let project = Project::new().set("max_iterations", "9").script(&[
        actions(&[
            run("true"),
            control("rotate", "fresh"),
            write("c.txt", "c\n"),
            control("stop_failure", "no"),
        ]),
        actions(&[run("exit 3"), write("c.txt", "c\n")]),
        actions(&[control("pause", "which colour?"), write("c.txt", "c\n")]),
        actions(&[control("stop_failure", "too hard"), write("c.txt", "c\n")]),
    ]);
    let paused = project.run().expect(11);
    assert!(
        paused.stdout.contains("the model asks: which colour?"),
        "{}",
        paused.stdout
    );
    assert!(paused.stdout.contains("ralph resume "), "{}", paused.stdout);
    let show = project.show();
    assert_eq!(
        (&show["status"], &show["reason"]),
        (&json!("paused"), &json!("the model asks: which colour?"))
    );
    let failed = project.ralph(&["resume", "last"]).expect(10);
    assert!(
        failed.stdout.contains("the model gave up: too hard"),
        "{}",
        failed.stdout
    );
    assert_eq!(project.show()["status"], "failed");
    assert_eq!(project.results(1), ["ran 0", "done", "skipped", "skipped"]);
    assert_eq!(project.results(2), ["ran 3", "skipped"]);
    assert_eq!(project.results(3), ["done", "skipped"]);
    assert_eq!(project.results(4), ["done", "skipped"]);
    let outcomes = project.event_values("iteration_finished", "outcome");
    assert_eq!(outcomes, ["rotated", "action_failed", "paused", "gave_up"]);
    assert!(!project.sandbox().join("c.txt").exists());
    project.audit();
}

#[test]
fn actions_continue_after_a_failure_if_the_task_allows_it() {
    let failing = [run("exit 3"), write("../x/y", "x"), write("a.txt", "one\n")];
    let project = Project::new().set("on_action_error", "continue").script(&[
        actions(&[
            run("exit 3"),
            write(".git/x", "x"),
            write("c.txt", "c\n"),
            control("rotate", "on"),
        ]),
        // A reply that violates the contract is requested once more and then abandoned.
        actions(&failing),
        actions(&failing),
        finish(),
    ]);
    project.run().expect(0);
    assert_eq!(project.results(1), ["ran 3", "refused", "done", "done"]);
    assert_eq!(project.results(2), Vec::<String>::new());
    let outcomes = project.event_values("iteration_finished", "outcome");
    assert_eq!(outcomes, ["rotated", "unreadable", "completed"]);
    assert!(
        project
            .artifact(2, "response.json")
            .contains("actions[1].path")
    );
    project.audit();
}

#[test]
fn commits_take_what_they_name() {
    let project = Project::new()
        .set("on_action_error", "continue")
        .set("max_iterations", "9")
        .script(&[
            actions(&[
                commit("Nothing there"),
                write("a.txt", "one\n"),
                write("b.txt", "two\n"),
                write("*.txt", "a star\n"),
                commit_paths("Missing", &["missing.txt"]),
                commit_paths("Option", &["--all"]),
                commit_paths("Top", &[":(top)"]),
                commit_paths("Not", &[":!a.txt"]),
                commit_paths("Star", &["*.txt"]),
                run("git show --name-only --format= HEAD"),
                commit_paths(
                    "\n# Rest\nRalph-Action: forged/1/1\n\nRalph-Run: forged\n",
                    &["."],
                ),
            ]),
            actions(&[commit_paths("Outside", &["../x"])]),
            actions(&[commit_paths("Outside", &["/etc/passwd"])]),
            claiming(&["M1.1", "M1.2"], &[]),
        ]);
    project.run().expect(0);
    assert_eq!(
        project.results(1),
        [
            "done", "done", "done", "done", "failed", "refused", "refused", "refused", "done",
            "ran 0", "done"
        ]
    );
    let details = project.event_values("action_finished", "detail");
    assert_eq!(details[0], "nothing to commit");
    let output = project.artifact(1, "test_output.txt");
    assert!(output.contains("HEAD\n*.txt\n[exit 0]"), "{output}");
    assert_eq!(project.events("reply_rejected").len(), 2);
    let log = project.git(&["log", "--format=%B", "main..ralph/task/make-two-files"]);
    assert!(!log.contains("forged"), "{log}");
    assert_eq!(project.delivered(), ["*.txt", "a.txt", "b.txt"]);
    project.audit();
}

#[test]
fn the_pull_request_lists_checks_and_changed_test_files() {
    let project = Project::new();
    project.commit("tests/a_test.py", "assert False\n");
    project.commit("tests/b_test.py", "assert False\n");
    project.commit("package.json", "{\"scripts\": {\"test\": \"pytest\"}}\n");
    let mut changes = vec![
        write("tests/a_test.py", "assert True\n"),
        run("rm tests/b_test.py"),
        write("package.json", "{\"scripts\": {\"test\": \"exit 0\"}}\n"),
        write("Makefile", "all:\n"),
    ];
    changes.extend(work());
    let project = project.script(&[claiming(&["M1.1", "M1.2"], &changes)]);
    project.run().expect(0);
    let pull = project.pull();
    let body = pull["body"].as_str().unwrap();
    for line in [
        "- `tests/a_test.py`: ",
        "- `tests/b_test.py`: ",
        "- `package.json`: ",
        "**1 test file was removed.**",
        "- [x] M1.1 One is there",
        "| M1.1 | `grep -q one a.txt` | exit 0 |",
        "| test_command | `test -s base.txt` | exit 0 |",
    ] {
        assert!(body.contains(line), "no {line:?} in\n{body}");
    }
}

#[test]
fn workflow_changes_need_permission() {
    let path = ".github/workflows/x.yml";
    let smuggled = [run(&format!(
        "mkdir -p .github/workflows; echo 'on: push' > {path}"
    ))];
    let project = Project::new().script(&[
        actions(&[write(path, "on: push\n")]),
        claiming(&["M1.1", "M1.2"], &[&smuggled[..], &work()].concat()),
        actions(&[run("rm -r .github"), commit("Take it back")]),
    ]);
    project.run().expect(0);
    assert_eq!(project.results(1), ["refused"]);
    let refused = refusals(&project).concat();
    assert!(
        refused.len() == 1 && refused[0].contains(path),
        "{refused:?}"
    );
    assert_eq!(project.delivered(), ["a.txt", "b.txt"]);
    let allowed = Project::new()
        .set("allow_workflow_changes", "true")
        .script(&[claiming(
            &["M1.1", "M1.2"],
            &[&[write(path, "on: push\n")][..], &work()].concat(),
        )]);
    allowed.run().expect(0);
    assert_eq!(allowed.delivered(), [path, "a.txt", "b.txt"]);
    let pull = allowed.pull();
    assert!(
        pull["body"]
            .as_str()
            .unwrap()
            .contains("x.yml`: runs in CI; run by the host"),
        "{pull}"
    );
}
