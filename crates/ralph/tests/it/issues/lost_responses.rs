//! The process is killed while it waits for the response to a change.

use std::collections::BTreeSet;

use ralph_test::{FaultRule, GitHubFault};

use super::fixture::{DILIGENT, IssueTest, TWO_STEPS};

/// The changes after which the process is killed: the start of the request, and the number of earlier ones.
const CHANGES: [(&str, usize); 9] = [
    // The claim.
    ("POST /repos/octo/app/issues/1/labels", 0),
    ("DELETE /repos/octo/app/issues/1/labels/", 0),
    ("POST /repos/octo/app/issues/1/comments", 0),
    ("POST /repos/octo/app/pulls", 0),
    // The marks of a step.
    ("PATCH /repos/octo/app/issues/1", 0),
    ("POST /graphql", 0),
    ("PATCH /repos/octo/app/issues/comments/", 0),
    // The label of an issue that is done, and the removal of the one before.
    ("POST /repos/octo/app/issues/1/labels", 1),
    ("DELETE /repos/octo/app/issues/1/labels/", 1),
];

/// Asserts that each key of a comment was used once.
fn assert_one_comment_per_key(test: &IssueTest, number: u64, operation: &str) {
    let comments = test.comments(number);
    let keys = comments.iter().map(|comment| {
        let start = comment.find("<!-- ralph");
        comment[start.expect("a key")..].to_owned()
    });
    let keys: BTreeSet<String> = keys.collect();
    assert_eq!(keys.len(), comments.len(), "{operation}: {comments:?}");
}

fn assert_continued((operation, earlier): (&str, usize)) {
    let test = IssueTest::new(DILIGENT);
    assert_eq!(test.ready(TWO_STEPS), 1);
    let hang = FaultRule::once(operation, GitHubFault::Hang).after(earlier);
    test.remote.github.plan(hang);
    let live = test.remote.project.spawn(&["issue", "1"]);
    test.remote.wait_for_lost(operation);
    live.signal(rustix::process::Signal::KILL);
    live.wait();
    let output = test.remote.project.ralph(&["issue", "1"]);
    assert_eq!(output.code, 0, "{operation}: {}", output.combined());
    let pulls = test.remote.github.with_app(|app| app.pulls());
    let [pull] = &pulls[..] else {
        panic!("{operation}: {pulls:?}");
    };
    assert!(!pull.pull.as_ref().unwrap().is_draft, "{operation}");
    for number in [1, pull.number] {
        assert_one_comment_per_key(&test, number, operation);
    }
    assert_eq!(test.comments(1).len(), 1, "{operation}");
    assert_eq!(test.status(1), "status:done", "{operation}");
    let labels = test
        .remote
        .github
        .with_app(|app| app.issue(1).labels.clone());
    assert!(labels.contains(&"spec".to_owned()), "{operation}");
    let body = test.body(1);
    assert_eq!(body.matches(" [done]\n").count(), 2, "{operation}: {body}");
    test.remote.project.audit();
}

#[test]
fn a_killed_process_repeats_no_change() {
    std::thread::scope(|scope| {
        for change in CHANGES {
            scope.spawn(move || assert_continued(change));
        }
    });
}

/// A response that is lost without a kill has no effect on the result.
#[test]
fn lost_responses_are_repeated_safely() {
    let test = IssueTest::new(DILIGENT);
    assert_eq!(test.ready(TWO_STEPS), 1);
    for operation in [
        "POST /repos/octo/app/pulls",
        "POST /repos/octo/app/issues/1/comments",
        "PATCH /repos/octo/app/issues/1",
        "POST /graphql",
    ] {
        let lost = FaultRule::once(operation, GitHubFault::LoseResponse);
        test.remote.github.plan(lost);
    }
    test.remote.project.ralph(&["issue", "1"]).expect(0);
    assert_eq!(test.remote.github.with_app(|app| app.pulls().len()), 1);
    assert_eq!(test.comments(1).len(), 1);
    assert_eq!(test.status(1), "status:done");
}
