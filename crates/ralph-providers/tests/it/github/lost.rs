//! Lost responses, failures and timeouts of every change: one pull request, one comment, no lost label.

use std::time::Duration;

use ralph_core::ports::{KeyedComment, PullDraft, PullState, Scm as _, ScmError};
use ralph_providers::scm::github::GitHubHost;
use ralph_test::{FaultRule, GitHubFault};

use super::fixture::{HostTest, draft, issues};

/// The changes of a publication.
const OPERATIONS: [&str; 6] = [
    "POST /repos/octo/app/pulls ",
    "POST /repos/octo/app/issues/1/labels",
    "POST /graphql",
    "PATCH /repos/octo/app/pulls/1",
    "POST /repos/octo/app/issues/1/comments",
    "PATCH /repos/octo/app/issues/comments/",
];

async fn publish(host: &GitHubHost) -> Result<(), ScmError> {
    let opened = host.open(&draft("One", "text")).await?;
    let ready = PullDraft {
        state: PullState::Open,
        ..draft("Two", "new text")
    };
    host.update(opened.number, &ready).await?;
    for body in ["started", "finished"] {
        let comment = KeyedComment {
            key: "run-1".into(),
            body: body.into(),
        };
        issues(host).comment(opened.number, &comment).await?;
    }
    Ok(())
}

/// Publishes like a process that is started again after each failure.
async fn publish_until_done(test: &HostTest, what: &str) {
    for _ in 0..5 {
        match publish(&test.host()).await {
            Ok(()) => return check(test, what),
            Err(ScmError::Host(error)) if error.kind.is_transient() => {}
            Err(error) => panic!("{what}: {error}"),
        }
    }
    panic!("{what}: not published after 5 attempts");
}

fn check(test: &HostTest, what: &str) {
    let pulls = test.github.with_app(|app| app.pulls());
    assert_eq!(pulls.len(), 1, "{what}");
    assert_eq!(pulls[0].title, "Two", "{what}");
    assert_eq!(pulls[0].labels, ["ralph", "size: s"], "{what}");
    assert!(!pulls[0].pull.as_ref().unwrap().is_draft, "{what}");
    assert_eq!(pulls[0].body.matches("ralph:pull").count(), 1, "{what}");
    let comments = test.github.with_app(|app| app.comments_on(1));
    assert_eq!(
        comments,
        ["<!-- ralph:comment run-1 -->\nfinished"],
        "{what}"
    );
}

#[tokio::test]
async fn no_change_happens_twice() {
    for operation in OPERATIONS {
        for fault in [
            GitHubFault::LoseResponse,
            GitHubFault::StatusAfter(502),
            GitHubFault::Status(502),
            GitHubFault::Drop,
        ] {
            for times in [1, 2] {
                let test = HostTest::new();
                let rule = FaultRule::once(operation, fault.clone());
                test.github.plan(FaultRule { times, ..rule });
                let what = format!("{operation}: {fault:?} {times} times");
                publish_until_done(&test, &what).await;
                let created = test.github.mutations();
                let created = created
                    .iter()
                    .filter(|line| *line == "POST /repos/octo/app/pulls");
                assert_eq!(created.count(), 1, "{what}");
            }
        }
    }
}

#[tokio::test]
async fn a_response_that_never_arrives_is_a_lost_one() {
    let mut test = HostTest::new();
    test.timeout = Duration::from_secs(5);
    let rule = FaultRule::once("POST /repos/octo/app/pulls ", GitHubFault::Hang);
    test.github.plan(rule);
    publish_until_done(&test, "hang").await;
}

#[tokio::test]
async fn a_pull_request_of_another_process_is_found_after_the_rejection() {
    let test = HostTest::new();
    // The other process opens it between the search and the request.
    let empty = FaultRule::once("GET /repos/octo/app/pulls?", GitHubFault::Drop);
    test.github.plan(FaultRule { times: 3, ..empty });
    let error = test.host().open(&draft("One", "text")).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("GET /repos/octo/app/pulls failed")
    );
    assert_eq!(
        test.github.mutations(),
        [""; 0],
        "nothing is opened blindly"
    );
    publish_until_done(&test, "afterwards").await;
}

#[tokio::test]
async fn a_lost_label_decides_for_nobody() {
    let operation = "DELETE /repos/octo/app/issues/1/labels/status:ready";
    for (fault, expected) in [
        (None, Some(true)),
        (Some(GitHubFault::Status(502)), Some(true)),
        (Some(GitHubFault::Drop), Some(true)),
        (Some(GitHubFault::LoseResponse), None),
        (Some(GitHubFault::StatusAfter(502)), None),
    ] {
        let test = HostTest::new();
        test.github
            .with_app(|app| app.add_issue("One", "", &["spec", "status:ready"]));
        if let Some(fault) = fault.clone() {
            test.github.plan(FaultRule::once(operation, fault));
        }
        let host = test.host();
        let removed = issues(&host).remove_label(1, "status:ready").await;
        assert_eq!(removed.ok(), expected, "{fault:?}");
        let labels = test.github.with_app(|app| app.issue(1).labels.clone());
        assert_eq!(labels, ["spec"]);
        let again = issues(&host).remove_label(1, "status:ready").await;
        assert!(!again.unwrap());
    }
}
