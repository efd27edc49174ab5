//! The host and the fake before judges that GitHub and others have written.

use ralph_core::id::CommitId;
use ralph_core::ports::{
    CommitState, CommitStatus, IssueLabel, KeyedComment, PullDraft, PullState, Scm as _,
};
use ralph_test::{FakeCheck, judge_github, run_github_client, skip_without_github_tools};

use super::fixture::{COMMIT, HostTest, abilities, draft, issues, token};

/// Performs every operation of the host.
async fn perform(test: &HostTest) {
    test.github.with_app(|app| {
        app.add_issue("One", "text", &["spec"]);
        app.set_check(
            COMMIT,
            FakeCheck::completed("test", "failure").with_log("log"),
        );
        app.set_check(COMMIT, FakeCheck::completed("lint", "success"));
        app.set_check(COMMIT, FakeCheck::running("docs"));
    });
    let host = test.host();
    let commit = CommitId::parse(COMMIT).unwrap();
    host.open(&draft("One", "text")).await.unwrap();
    for state in [PullState::Open, PullState::Draft] {
        let draft = PullDraft {
            state,
            ..draft("Two", "new text")
        };
        host.update(2, &draft).await.unwrap();
    }
    host.find("ralph/one").await.unwrap();
    test.github
        .with_app(|app| app.add_review(2, "ann", "APPROVED", "Good.", &[("a", 1, "b")]));
    let source = abilities(&host);
    source.validate().await.unwrap();
    source.branch("main").await.unwrap();
    source.open_pulls().await.unwrap();
    source.reviews(2).await.unwrap();
    for check in source.checks(&commit).await.unwrap().checks {
        source.failure_output(&check, 1000).await.unwrap();
    }
    let status = CommitStatus {
        state: CommitState::Success,
        context: "ralph/clean-room".into(),
        description: "ok".into(),
        url: None,
    };
    source.set_status(&commit, &status).await.unwrap();
    let tracker = issues(&host);
    tracker.open_issues(&["spec"]).await.unwrap();
    tracker.set_body(1, "new").await.unwrap();
    tracker.add_labels(1, &["status:ready"]).await.unwrap();
    assert!(tracker.remove_label(1, "status:ready").await.unwrap());
    assert!(!tracker.remove_label(1, "status:ready").await.unwrap());
    let label = IssueLabel {
        name: "status:done".into(),
        color: "0e8a16".into(),
        description: "A state".into(),
    };
    tracker.create_labels(&[label]).await.unwrap();
    for body in ["one", "two"] {
        let comment = KeyedComment {
            key: "key".into(),
            body: body.into(),
        };
        tracker.comment(1, &comment).await.unwrap();
    }
    assert_eq!(tracker.issue(99).await.unwrap(), None);
}

#[tokio::test]
async fn every_operation_matches_githubs_descriptions() {
    let test = HostTest::new();
    perform(&test).await;
    // A second pull request of the branch is rejected as described, too.
    test.github
        .with_app(|app| app.issue(2).pull.as_mut().unwrap().head = "hidden".into());
    let app = test.app_host();
    abilities(&app).validate().await.unwrap();
    judge_github(&test.github.ledger());
}

#[test]
fn other_clients_use_the_fake() {
    if skip_without_github_tools() {
        return;
    }
    for client in ["octokit", "pygithub"] {
        let test = HostTest::new();
        test.github.with_app(|app| {
            app.add_pull("One", "one", "main", &["a"]);
            app.add_review(1, "ann", "APPROVED", "Good.", &[]);
            app.add_issue("Two", "text", &["spec"]);
            app.set_check(COMMIT, FakeCheck::completed("test", "success"));
        });
        run_github_client(client, &test.github.url(), &token(), COMMIT);
    }
}
