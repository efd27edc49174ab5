//! The process is killed while it waits for the response to a change.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ralph_test::{FaultRule, GitHubFault};

use super::fixture::{DILIGENT, IssueTest, TWO_STEPS};

/// Returns the changes of a whole run: the start of the request, and the number of earlier requests with this start.
/// Of each change that is repeated, these are the first one and the last one.
fn changes() -> Vec<(String, usize)> {
    let test = IssueTest::new(DILIGENT);
    assert_eq!(test.ready(TWO_STEPS), 1);
    test.remote.project.ralph(&["issue", "1"]).expect(0);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut changes: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for exchange in test.remote.github.ledger() {
        let operation = exchange.operation();
        // The commit is another one in each run.
        let operation = match operation.split_once("/statuses/") {
            Some((repository, _)) => format!("{repository}/statuses/"),
            None => operation.to_owned(),
        };
        let earlier = seen.entry(operation.clone()).or_default();
        if exchange.is_mutation {
            changes.entry(operation).or_default().insert(*earlier);
        }
        *earlier += 1;
    }
    for expected in [
        "POST /octo/app.git/git-receive-pack",
        "POST /repos/octo/app/pulls",
        "POST /graphql",
        "POST /repos/octo/app/statuses/",
        "PATCH /repos/octo/app/issues/1",
        "POST /repos/octo/app/issues/1/comments",
        "DELETE /repos/octo/app/issues/1/labels/status:ready",
    ] {
        assert!(changes.contains_key(expected), "{expected}: {changes:?}");
    }
    let ends = |earlier: &BTreeSet<usize>| -> BTreeSet<usize> {
        earlier
            .first()
            .into_iter()
            .chain(earlier.last())
            .copied()
            .collect()
    };
    let each = |(operation, earlier): (&String, &BTreeSet<usize>)| {
        let ends = ends(earlier).into_iter();
        ends.map(|earlier| (operation.clone(), earlier))
            .collect::<Vec<_>>()
    };
    changes.iter().flat_map(each).collect()
}

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
    // Another change may be a prefix of the line.
    let exactly = if operation.ends_with('/') {
        operation.to_owned()
    } else {
        format!("{operation} ")
    };
    let test = IssueTest::new(DILIGENT);
    assert_eq!(test.ready(TWO_STEPS), 1);
    let hang = FaultRule::once(&exactly, GitHubFault::Hang).after(earlier);
    test.remote.github.plan(hang);
    let mut live = test.remote.project.spawn(&["issue", "1"]);
    // Marks of two steps may be written together, so the last write may not happen.
    while live.is_alive() && !test.remote.has_lost(operation) {
        std::thread::sleep(Duration::from_millis(20));
    }
    if live.is_alive() {
        live.signal(rustix::process::Signal::KILL);
    }
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
    let changes = changes();
    // Each of them starts a few processes.
    for some in changes.chunks(8) {
        std::thread::scope(|scope| {
            for (operation, earlier) in some {
                scope.spawn(move || assert_continued((operation, *earlier)));
            }
        });
    }
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
