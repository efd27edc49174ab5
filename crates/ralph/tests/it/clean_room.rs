//! Every check has its own clean room, and none of its effects reach another check or the branch.

use serde_json::Value;

use crate::project::{Project, claiming, commit, control, finish, run, work, write};

/// A task with these two verify commands.
fn checked_by(first: &str, second: &str) -> String {
    format!(
        "# Task: T\n\n- [ ] M1.1 First\n  - verify: `{first}`\n- [ ] M1.2 Second\n  - verify: `{second}`\n"
    )
}

/// Returns the reasons of the last verdict.
fn reasons(project: &Project) -> Vec<String> {
    let all = project.event_values("verify_finished", "reasons");
    let last = all.last().expect("there is a verdict").clone();
    serde_json::from_value(last).unwrap()
}

/// Returns the kinds and texts of the findings of the last verdict.
fn findings(project: &Project) -> Vec<(String, String)> {
    let events = project.events("verify_finished");
    let last = events.last().map(|event| event["findings"].clone());
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    last.iter()
        .filter_map(Value::as_array)
        .flatten()
        .map(|finding| (text(finding, "kind"), text(finding, "text")))
        .collect()
}

#[test]
fn nothing_that_a_check_leaves_behind_helps_another_one() {
    for (leave, second) in [
        ("touch ignored.txt", "test -e ignored.txt"),
        ("echo x > $HOME/left", "test -e $HOME/left"),
        (
            "echo x > ${TMPDIR:-/tmp}/left-here",
            "test -e ${TMPDIR:-/tmp}/left-here",
        ),
        (
            "git config user.email x@y.z",
            "git config user.email | grep x@y.z",
        ),
        ("git config alias.ok '!true'", "git ok"),
        (
            "mkdir -p .git/hooks; touch .git/hooks/left",
            "test -e .git/hooks/left",
        ),
        ("git tag left", "git rev-parse --verify left"),
        (
            "(sleep 60 & echo $! > $HOME/pid)",
            "kill -0 $(cat $HOME/pid)",
        ),
    ] {
        let project = Project::new()
            .body(&checked_by("sh one.sh", second))
            .set("max_iterations", "1")
            .script(&[claiming(
                &["M1.1", "M1.2"],
                &[
                    write(".gitignore", "ignored.txt\n"),
                    write("one.sh", &format!("{leave}\n")),
                    // The work sandbox may contain anything; the clean rooms must not.
                    run("sh one.sh; git add one.sh .gitignore"),
                    commit("One"),
                ],
            )]);
        let ended = project.run();
        assert_ne!(ended.code, 0, "{leave}: {}", ended.combined());
        let green = project.event_values("verify_finished", "green");
        assert!(!green.contains(&true.into()), "{leave}: {green:?}");
    }
}

#[test]
fn a_check_that_moves_head_is_red() {
    let cheat = "git checkout -q HEAD~1 2>/dev/null; test ! -e bug.txt\n";
    let project = Project::new()
        .body(&checked_by("sh check.sh", "test -s check.sh"))
        .set("max_iterations", "1")
        .script(&[claiming(
            &["M1.1", "M1.2"],
            &[
                write("check.sh", cheat),
                commit("The check"),
                write("bug.txt", "x\n"),
                commit("The bug"),
            ],
        )]);
    project.run().expect(10);
    let reasons = reasons(&project);
    assert!(
        reasons.len() == 1 && reasons[0].contains("`sh check.sh` moved HEAD from "),
        "{reasons:?}"
    );
    project.audit();
}

#[test]
fn a_check_that_rewrites_what_it_judges_qualifies_the_success() {
    for rewrite in [
        "echo two > b.txt; grep -q two b.txt",
        "cp b.txt x; echo z > b.txt; cat x > b.txt",
    ] {
        let project = Project::new()
            .body(&checked_by("sh check.sh", "grep -q one a.txt"))
            .script(&[claiming(
                &["M1.1", "M1.2"],
                &[&[write("check.sh", &format!("{rewrite}\n"))][..], &work()].concat(),
            )]);
        let ended = project.run().expect(0);
        let found = findings(&project);
        let text = "`sh check.sh` wrote to files of the commit while it checked them: `b.txt`";
        let expected = ("rewritten_files".to_owned(), text.to_owned());
        assert!(found.contains(&expected), "{found:?}");
        assert!(ended.stdout.contains(text), "{}", ended.stdout);
        assert!(project.pull()["body"].as_str().unwrap().contains(text));
        let shown = project.show();
        let shown = shown["findings"].as_array().unwrap();
        assert!(
            shown.iter().any(|finding| finding["text"] == text),
            "{shown:?}"
        );
        project.audit();
    }
}

#[test]
fn changes_and_commits_of_a_check_never_land_on_the_branch() {
    let script = "echo hacked > base.txt; echo more > extra.txt; touch kept.log\n\
        git add -A; git commit -q -m 'By the check'; echo again >> base.txt; git add base.txt\n\
        git checkout -q -b elsewhere; test -s base.txt\n";
    let project = Project::new()
        .set("test_command", "sh check.sh")
        .body(&checked_by("sh check.sh", "grep -q one a.txt"))
        .script(&[
            claiming(
                &["M1.1"],
                &[
                    write("check.sh", script),
                    write(".gitignore", "*.log\n"),
                    write("draft.txt", "not committed yet\n"),
                ],
            ),
            claiming(
                &["M1.2"],
                &[&[run("test -e kept.log")][..], &work()].concat(),
            ),
            finish(),
        ]);
    project.run();
    let delivered = project.delivered();
    assert!(
        !delivered.contains(&"extra.txt".to_owned()),
        "{delivered:?}"
    );
    assert!(!delivered.contains(&"base.txt".to_owned()), "{delivered:?}");
    assert!(delivered.contains(&"draft.txt".to_owned()), "{delivered:?}");
    let branch = "main..ralph/task/t";
    let log = project.git(&["log", "--format=%s", branch]);
    assert!(!log.contains("By the check"), "{log}");
    // Ignored files of a check remain: they speed up builds.
    assert_eq!(project.results(2)[0], "ran 0");
    let tampered = project.event_values("tamper", "finding");
    let discarded = |finding: &Value| {
        let finding = finding.as_str().unwrap_or_default();
        finding.contains("by the check `sh check.sh`") && finding.ends_with("; restored")
    };
    assert!(tampered.iter().any(discarded), "{tampered:?}");
    project.audit();
}

#[test]
fn replaced_objects_do_not_reach_a_clean_room() {
    let replace = "git commit -q --allow-empty -m Empty; good=$(git rev-parse HEAD); \
        echo fine > base.txt; git commit -q -a -m Replacement; git replace $good HEAD; \
        git reset -q --hard $good";
    let project = Project::new()
        .body(&checked_by("grep -q fine base.txt", "grep -q one a.txt"))
        .set("max_iterations", "1")
        .script(&[claiming(
            &["M1.1", "M1.2"],
            &[&work()[..], &[run(replace)]].concat(),
        )]);
    project.run().expect(10);
    let green = project.event_values("verify_finished", "green");
    assert!(!green.contains(&true.into()), "{green:?}");
}

/// Returns whether each verdict has the finding `flaky`.
fn flaky_verdicts(project: &Project) -> Vec<bool> {
    let is_flaky = |event: &Value| {
        let found = event["findings"].as_array();
        found.is_some_and(|found| found.iter().any(|finding| finding["kind"] == "flaky"))
    };
    project
        .events("verify_finished")
        .iter()
        .map(is_flaky)
        .collect()
}

/// A project whose check fails in these executions; 0 is the first, in the work sandbox.
fn flaky(red_at: &str) -> Project {
    let project = Project::new()
        .set("max_iterations", "2")
        // The baseline would run the check once more.
        .set("verification", "{baseline: false}");
    let counter = project.path("counter");
    let check = format!(
        "n=$(cat {0} 2>/dev/null || echo 0); echo $((n + 1)) > {0}; case $n in {red_at}) exit 1;; esac",
        counter.display()
    );
    let done = |with: &[Value]| claiming(&["M1.1", "M1.2"], with);
    project
        .body(&checked_by(&check, "grep -q one a.txt"))
        .script(&[done(&work()), done(&[control("stop_success", "done")])])
}

#[test]
fn a_commit_that_was_red_must_be_green_twice_in_a_row() {
    // Work sandbox, red in a clean room, work sandbox again, then green twice.
    let project = flaky("1");
    let ended = project.run().expect(0);
    let green = project.event_values("verify_finished", "green");
    assert_eq!(green, [false, true, true].map(Value::from));
    assert_eq!(flaky_verdicts(&project), [false, false, true]);
    let found = findings(&project);
    assert_eq!(found[0].0, "flaky", "{found:?}");
    assert!(ended.stdout.contains("flaky: commit "), "{}", ended.stdout);
    assert!(
        project.pull()["body"]
            .as_str()
            .unwrap()
            .contains("flaky: commit ")
    );
    project.audit();

    let project = flaky("1|4");
    project.run().expect(10);
    let green = project.event_values("verify_finished", "green");
    assert_eq!(green, [false, true, false].map(Value::from));
    assert_eq!(flaky_verdicts(&project), [false, false, false]);
    project.audit();
}

#[test]
fn protected_files_come_from_the_base_commit() {
    let project = Project::new()
        .set("verification", "{protected: [\"check.sh\"]}")
        .set("max_iterations", "1")
        .body(&checked_by("sh check.sh", "grep -q two b.txt"));
    project.commit("check.sh", "grep -q three a.txt\n");
    let cheat = [&[write("check.sh", "exit 0\n")][..], &work()].concat();
    let project = project.script(&[claiming(&["M1.1", "M1.2"], &cheat)]);
    project.run().expect(10);
    assert_eq!(reasons(&project), ["`sh check.sh`: exit 1"]);

    let project = Project::new()
        .set("verification", "{protected: [\"check.sh\"]}")
        .body(&checked_by("sh check.sh", "grep -q two b.txt"));
    project.commit("check.sh", "grep -q one a.txt\n");
    let project = project.script(&[claiming(&["M1.1", "M1.2"], &cheat)]);
    project.run().expect(0);
    let text = "protected files were changed; the checks used their versions from the base commit: `check.sh`";
    let expected = ("protected".to_owned(), text.to_owned());
    assert!(
        findings(&project).contains(&expected),
        "{:?}",
        findings(&project)
    );
    project.audit();
}

#[test]
fn the_tests_of_the_base_commit_that_pass_on_the_new_code_are_evidence() {
    let project = Project::new().set("test_command", "sh tests/all.sh");
    project.commit("tests/all.sh", "test -s base.txt\n");
    let changes = [
        &[write("tests/all.sh", "test -s base.txt && test -s a.txt\n")][..],
        &work(),
    ]
    .concat();
    let project = project.script(&[claiming(&["M1.1", "M1.2"], &changes)]);
    project.run().expect(0);
    let text = "the tests of the base commit pass on the new code".to_owned();
    let found = findings(&project);
    assert!(
        found.contains(&("old_tests_pass".to_owned(), text)),
        "{found:?}"
    );
    project.audit();
}
