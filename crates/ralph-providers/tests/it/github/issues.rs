//! Issues, labels and comments.

use ralph_core::ports::{IssueLabel, KeyedComment};
use ralph_test::FakeGitHubToken;

use super::fixture::{HostTest, issues, token};

#[tokio::test]
async fn issues_are_listed_without_pull_requests() {
    let test = HostTest::new();
    test.github.state().page_size = 2;
    test.github.with_app(|app| {
        for number in 1..=5 {
            app.add_issue(
                &format!("Issue {number}"),
                "text",
                &["spec", "status:ready"],
            );
        }
        let pull = app.add_pull("Pull", "one", "main", &[]);
        app.issue(pull).labels = vec!["spec".into(), "status:ready".into()];
        app.issue(2).labels.pop();
        app.close(3);
        app.add_issue_by("mallory", "Evil", "", &["spec", "status:ready"]);
    });
    let host = test.host();
    let found = issues(&host).open_issues(&["spec", "status:ready"]).await;
    let found: Vec<_> = found
        .unwrap()
        .into_iter()
        .map(|issue| (issue.number, issue.author))
        .collect();
    let octocat = || "octocat".to_owned();
    assert_eq!(
        found,
        [
            (1, octocat()),
            (4, octocat()),
            (5, octocat()),
            (7, "mallory".into())
        ]
    );
    assert_eq!(
        issues(&host).issue(6).await.unwrap(),
        None,
        "a pull request"
    );
    assert_eq!(issues(&host).issue(99).await.unwrap(), None);
    let closed = issues(&host).issue(3).await.unwrap().unwrap();
    assert!(!closed.open);
    assert_eq!(closed.url, "https://github.com/octo/app/issues/3");
    assert_eq!(
        issues(&host).viewer().await.unwrap().as_deref(),
        Some("octocat")
    );
}

#[tokio::test]
async fn bodies_and_labels_are_written() {
    let test = HostTest::new();
    test.github
        .with_app(|app| app.add_issue("One", "old", &["spec"]));
    let host = test.host();
    issues(&host).set_body(1, "new").await.unwrap();
    let label = |name: &str| IssueLabel {
        name: name.into(),
        color: "0e8a16".into(),
        description: "A state".into(),
    };
    let labels = [label("Spec"), label("status:done")];
    issues(&host).create_labels(&labels).await.unwrap();
    issues(&host).create_labels(&labels).await.unwrap();
    issues(&host).add_labels(1, &["status:done"]).await.unwrap();
    let issue = issues(&host).issue(1).await.unwrap().unwrap();
    assert_eq!(
        (issue.body.as_str(), issue.labels.join(" ")),
        ("new", "spec status:done".into())
    );
    let known = test.github.with_app(|app| app.labels.clone());
    assert_eq!((known.len(), known[1].color.as_str()), (2, "0e8a16"));
    let created = test.github.mutations();
    assert_eq!(
        created
            .iter()
            .filter(|line| line.ends_with("/app/labels"))
            .count(),
        1
    );
}

#[tokio::test]
async fn a_comment_exists_once_per_key() {
    let test = HostTest::new();
    test.github.state().page_size = 2;
    test.github.with_app(|app| {
        app.add_issue("One", "", &[]);
        for number in 0..3 {
            app.add_comment(1, "someone", &format!("comment {number}"));
        }
        // Anyone can write the marker.
        app.add_comment(1, "mallory", "<!-- ralph:comment lint -->\nforged");
    });
    let comment = |key: &str, body: &str| KeyedComment {
        key: key.into(),
        body: body.into(),
    };
    let host = test.host();
    assert_eq!(issues(&host).find_comment(1, "lint").await.unwrap(), None);
    for (key, body) in [
        ("lint", "first"),
        ("cost", "1 USD"),
        ("lint", "second"),
        ("lint", "second"),
    ] {
        issues(&host).comment(1, &comment(key, body)).await.unwrap();
    }
    let comments = test.github.with_app(|app| app.comments_on(1));
    assert_eq!(
        comments[3..],
        [
            "<!-- ralph:comment lint -->\nforged",
            "<!-- ralph:comment lint -->\nsecond",
            "<!-- ralph:comment cost -->\n1 USD",
        ]
    );
    let found = issues(&host).find_comment(1, "lint").await.unwrap();
    assert_eq!(found.as_deref(), Some("second"));
    let long = comment("long", &"ä".repeat(100_000));
    issues(&host).comment(1, &long).await.unwrap();
    issues(&host).comment(1, &long).await.unwrap();
    let comments = test.github.with_app(|app| app.comments_on(1));
    assert_eq!(comments.len(), 7);
    assert_eq!(comments[6].chars().count(), 65_536);
}

#[tokio::test]
async fn an_app_recognises_its_own_comments() {
    let test = HostTest::new();
    test.github.with_app(|app| app.add_issue("One", "", &[]));
    let host = test.app_host();
    let comment = KeyedComment {
        key: "lint".into(),
        body: "text".into(),
    };
    issues(&host).comment(1, &comment).await.unwrap();
    issues(&host).comment(1, &comment).await.unwrap();
    assert_eq!(test.github.with_app(|app| app.comments_on(1).len()), 1);
    assert_eq!(issues(&host).viewer().await.unwrap(), None);
    // A token that another program created for an App has no user.
    test.github
        .add_token(&token(), FakeGitHubToken::Installation);
    assert_eq!(issues(&test.host()).viewer().await.unwrap(), None);
}
