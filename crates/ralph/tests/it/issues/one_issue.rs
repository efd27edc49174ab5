use ralph_test::git;
use serde_json::Value;

use super::fixture::{DILIGENT, IssueTest, TWO_STEPS};

#[test]
fn an_issue_becomes_a_pull_request() {
    let test = IssueTest::new(DILIGENT);
    let number = test.ready(TWO_STEPS);
    let output = test
        .remote
        .project
        .ralph(&["--issue", &number.to_string()])
        .expect(0);
    assert!(
        output.stdout.contains(&format!("issue #{number} is done")),
        "{}",
        output.stdout
    );
    assert_eq!(test.status(number), "status:done");
    let body = test.body(number);
    assert!(body.contains("### Step 1: One is there [done]"), "{body}");
    assert!(
        body.contains("> **Notes**\n> Chose the name 2.txt"),
        "{body}"
    );
    let comments = test.comments(number);
    assert_eq!(comments.len(), 1, "{comments:?}");
    assert!(comments[0].contains("**Done**"), "{comments:?}");
    let files = [
        "ls-tree",
        "--name-only",
        "feat/files",
        "--",
        "1.txt",
        "2.txt",
    ];
    let files = git(&test.remote.bare(), &files);
    assert_eq!(files.trim(), "1.txt\n2.txt");
    let shown = test.remote.project.show();
    assert_eq!(shown["status"], "succeeded");
    assert!(
        test.remote
            .project
            .prompt(1)
            .contains("Read the specification in `.ralph/spec.md`")
    );
    test.remote.project.audit();
    let labels: Vec<String> = test
        .remote
        .github
        .with_app(|app| app.labels.iter().map(|label| label.name.clone()).collect());
    assert!(
        labels.contains(&"status:blocked".to_owned()),
        "missing labels are created: {labels:?}"
    );
}

#[test]
fn a_problem_of_the_issue_is_a_comment_and_an_exit_code() {
    let test = IssueTest::new(DILIGENT);
    let number = test.ready("### Step 1: x\n");
    let output = test
        .remote
        .project
        .ralph(&["issue", &number.to_string(), "--json"])
        .expect(11);
    let lines: Vec<Value> = output
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.last().unwrap()["result"], "needs_attention");
    assert_eq!(test.status(number), "status:needs-attention");
    assert!(
        test.comments(number)[0].contains("no branch is given"),
        "{:?}",
        test.comments(number)
    );
    // A second problem updates the same comment.
    test.remote
        .github
        .with_app(|app| app.issue(number).body = "branch: a\n".into());
    test.remote
        .project
        .ralph(&["issue", &number.to_string()])
        .expect(11);
    let comments = test.comments(number);
    assert_eq!(comments.len(), 1);
    assert!(
        comments[0].contains("the issue has no steps"),
        "{comments:?}"
    );
    let missing = test.remote.project.ralph(&["issue", "99"]).expect(12);
    assert!(
        missing
            .stderr
            .contains("there is no issue #99 in `octo/app`"),
        "{}",
        missing.stderr
    );
    test.remote.github.with_app(|app| app.close(number));
    test.remote
        .project
        .ralph(&["issue", &number.to_string()])
        .expect(12);
}

#[test]
fn a_person_may_start_the_issue_of_another_author() {
    let test = IssueTest::new(DILIGENT);
    let number = test
        .remote
        .github
        .with_app(|app| app.add_issue_by("mallory", "Files", TWO_STEPS, &["spec", "status:ready"]));
    let polled = test
        .remote
        .project
        .ralph(&["poll", "--timeout", "0s"])
        .expect(0);
    assert!(
        polled.stdout.contains("poll timeout reached"),
        "{}",
        polled.stdout
    );
    assert_eq!(test.status(number), "status:ready");
    let output = test
        .remote
        .project
        .ralph(&["issue", &number.to_string()])
        .expect(0);
    assert!(
        output
            .stderr
            .contains("the author `mallory` is not one of `issues.authors`"),
        "{}",
        output.stderr
    );
}

#[test]
fn an_error_at_the_start_leaves_the_issue_ready() {
    let test = IssueTest::new(DILIGENT);
    let number = test.ready(TWO_STEPS);
    let refused = test
        .remote
        .project
        .ralph(&["issue", &number.to_string(), "--agent", "nobody"]);
    let refused = refused.expect(2);
    assert!(refused.stderr.contains("nobody"), "{}", refused.stderr);
    assert_eq!(test.status(number), "status:ready");
}

#[test]
fn the_actions_engine_reads_the_specification_in_its_task() {
    use crate::project::{claiming, commit, run};
    let test = IssueTest::new(DILIGENT);
    let one_step = TWO_STEPS.split("### Step 2").next().unwrap();
    let number = test.ready(one_step);
    let reply = claiming(&["S1"], &[run("echo x >1.txt"), commit("Add it")]);
    test.remote.project.write_script(&[reply]);
    let model = test.remote.project.model();
    test.remote
        .project
        .ralph(&[
            "issue",
            &number.to_string(),
            "--engine",
            "actions",
            "--model",
            &model,
        ])
        .expect(0);
    assert!(
        test.remote
            .project
            .prompt(1)
            .contains("### Step 1: One is there")
    );
    assert_eq!(test.status(number), "status:done");
    assert!(
        test.body(number)
            .contains("### Step 1: One is there [done]"),
        "{}",
        test.body(number)
    );
}

#[test]
fn ctrl_c_makes_the_issue_ready_again_and_the_same_run_continues() {
    let slow = "test -e ../go || { touch ../started; sleep 600; }\n".to_owned() + DILIGENT;
    let test = IssueTest::new(&slow);
    let number = test.ready(TWO_STEPS);
    let live = test.remote.project.spawn(&["issue", &number.to_string()]);
    live.wait_for_event("agent_started", 1);
    live.signal(rustix::process::Signal::INT);
    live.wait().expect(130);
    assert_eq!(test.status(number), "status:ready");
    assert!(
        test.comments(number)[0].contains("**Interrupted**"),
        "{:?}",
        test.comments(number)
    );
    std::fs::write(test.remote.project.sandbox().join("../go"), "").unwrap();
    let output = test
        .remote
        .project
        .ralph(&["issue", &number.to_string()])
        .expect(0);
    assert!(
        output.stdout.contains("continues on branch"),
        "{}",
        output.stdout
    );
    assert_eq!(test.status(number), "status:done");
}

#[test]
fn a_dead_process_leaves_an_issue_that_the_same_command_continues() {
    let slow = "test -e ../go || sleep 600\n".to_owned() + DILIGENT;
    let test = IssueTest::new(&slow);
    let number = test.ready(TWO_STEPS);
    let live = test.remote.project.spawn(&["issue", &number.to_string()]);
    live.wait_for_event("agent_started", 1);
    let refused = test
        .remote
        .project
        .ralph(&["issue", &number.to_string()])
        .expect(12);
    assert!(
        refused.stderr.contains("another process works on its run"),
        "{}",
        refused.stderr
    );
    live.signal(rustix::process::Signal::KILL);
    live.wait();
    assert_eq!(test.status(number), "status:in-progress");
    std::fs::write(test.remote.project.sandbox().join("../go"), "").unwrap();
    test.remote
        .project
        .ralph(&["issue", &number.to_string()])
        .expect(0);
    assert_eq!(test.status(number), "status:done");
    assert_eq!(test.comments(number).len(), 1);
}
