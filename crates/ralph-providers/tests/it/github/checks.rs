//! Checks, logs, statuses and reviews.

use ralph_core::id::CommitId;
use ralph_core::ports::{CheckConclusion, CommitState, CommitStatus, HostCheck, ReviewVerdict};
use ralph_core::secret::Secret;
use ralph_providers::scm::github::GitHubCredential;
use ralph_test::{FakeCheck, FakeGitHubToken};

use super::fixture::{COMMIT, HostTest, abilities};

fn commit() -> CommitId {
    CommitId::parse(COMMIT).unwrap()
}

#[tokio::test]
async fn every_state_of_a_check_has_a_conclusion() {
    use CheckConclusion::{Failed, Passed};
    let test = HostTest::new();
    let host = test.host();
    let empty = abilities(&host).checks(&commit()).await.unwrap();
    assert_eq!(empty.checks, []);
    let runs = [
        ("success", Some(Passed)),
        ("neutral", Some(Passed)),
        ("skipped", Some(Passed)),
        ("failure", Some(Failed)),
        ("cancelled", Some(Failed)),
        ("timed_out", Some(Failed)),
        ("action_required", Some(Failed)),
        ("stale", Some(Failed)),
        ("startup_failure", Some(Failed)),
        ("in_progress", None),
    ];
    let statuses = [
        ("success", Some(Passed)),
        ("failure", Some(Failed)),
        ("error", Some(Failed)),
        ("pending", None),
    ];
    test.github.state().page_size = 3;
    test.github.with_app(|app| {
        for (state, conclusion) in &runs {
            let check = match conclusion {
                Some(_) => FakeCheck::completed(state, state),
                None => FakeCheck::running(state),
            };
            app.set_check(COMMIT, FakeCheck::running(state));
            app.set_check(COMMIT, check);
        }
        for (state, _) in &statuses {
            app.set_status(COMMIT, &format!("zz/{state}"), "pending");
            app.set_status(COMMIT, &format!("zz/{state}"), state);
        }
    });
    let report = abilities(&host).checks(&commit()).await.unwrap();
    let seen = |name: &str| {
        let check = report.checks.iter().find(|check| check.name == name);
        let check = check.unwrap_or_else(|| panic!("no check `{name}`"));
        (check.state.clone(), check.conclusion)
    };
    for (state, conclusion) in runs {
        assert_eq!(seen(state), (state.to_owned(), conclusion));
    }
    for (state, conclusion) in statuses {
        assert_eq!(seen(&format!("zz/{state}")), (state.to_owned(), conclusion));
    }
    assert_eq!(report.checks.len(), runs.len() + statuses.len());
    assert_eq!((report.failed().count(), report.pending().count()), (8, 2));
}

#[tokio::test]
async fn the_runs_of_workflows_replace_checks_that_the_token_cannot_read() {
    let test = HostTest::new();
    test.github.with_app(|app| {
        app.set_check(COMMIT, FakeCheck::completed("build", "failure"));
        app.set_check(COMMIT, FakeCheck::running("test"));
    });
    let value = format!("github_pat_{}", "c4N4ry".repeat(6));
    for (denied, expected) in [
        (&["checks"][..], Ok(vec!["failure", "in_progress"])),
        (&["checks", "actions"], Err(vec!["checks"])),
    ] {
        let token = FakeGitHubToken::FineGrained(denied);
        test.github.add_token(&value, token);
        let host = test.host_with(GitHubCredential::Token(Secret::new(value.clone())));
        let missing = abilities(&host).validate().await.unwrap().missing;
        let report = abilities(&host).checks(&commit()).await;
        match expected {
            Ok(states) => {
                assert_eq!(missing, [""; 0]);
                let checks = report.unwrap().checks;
                let seen: Vec<&str> = checks.iter().map(|check| &*check.state).collect();
                assert_eq!(seen, states);
            }
            Err(names) => {
                let is_named = |name: &&str| missing.iter().any(|line| line.contains(name));
                assert!(names.iter().all(is_named), "{missing:?}");
                assert!(report.is_err());
            }
        }
    }
}

#[tokio::test]
async fn the_log_of_a_job_is_preferred_to_its_output() {
    let fixture = HostTest::new();
    let log = format!(
        "\u{feff}2026-03-01T08:00:00.1234567Z first\n{}2026-03-01T08:00:01.1234567Z error: the last line\n",
        "2026-03-01T08:00:00.1234567Z noise\n".repeat(5000)
    );
    fixture.github.with_app(|app| {
        app.set_check(
            COMMIT,
            FakeCheck::completed("test", "failure").with_log(&log),
        );
        let summary = Some("2 tests failed".to_owned());
        app.set_check(
            COMMIT,
            FakeCheck {
                summary,
                annotations: vec![("src/lib.rs".into(), 7, "assertion failed".into())],
                ..FakeCheck::completed("other", "failure")
            },
        );
        app.set_status(COMMIT, "zz/status", "failure");
    });
    let host = fixture.host();
    let report = abilities(&host).checks(&commit()).await.unwrap();
    let [other, job, status] = report.checks.as_slice() else {
        panic!("{report:?}");
    };
    let output = |check: HostCheck| {
        let host = &host;
        async move { abilities(host).failure_output(&check, 1000).await.unwrap() }
    };
    let text = output(job.clone()).await;
    assert!(text.ends_with("noise\nerror: the last line"), "{text}");
    assert!(text.len() <= 1000 && !text.contains("first"));
    let text = output(other.clone()).await;
    assert!(
        text.contains("2 tests failed\nsrc/lib.rs:7: assertion failed"),
        "{text}"
    );
    let text = output(status.clone()).await;
    assert_eq!(text, "check `zz/status`: failure");
    let ledger = fixture.github.ledger();
    let mut logs = ledger
        .iter()
        .filter(|each| each.operation().contains("/job-logs/"));
    assert!(
        !logs
            .next()
            .unwrap()
            .request
            .headers
            .contains_key("authorization")
    );
    // Without the permission, the output is used.
    fixture.github.state().are_logs_denied = true;
    let text = output(job.clone()).await;
    assert!(
        text.starts_with("check `test`: failure, see https://github.com/octo/app/actions/"),
        "{text}"
    );
}

#[tokio::test]
async fn a_status_is_set_and_cut() {
    let test = HostTest::new();
    let status = CommitStatus {
        state: CommitState::Failure,
        context: "ralph/clean-room".into(),
        description: "ä".repeat(200),
        url: Some("https://example.com/".into()),
    };
    abilities(&test.host())
        .set_status(&commit(), &status)
        .await
        .unwrap();
    let set = test.github.with_app(|app| app.statuses[COMMIT].clone());
    assert_eq!((set.len(), set[0].state.as_str()), (1, "failure"));
    let description = set[0].description.clone().unwrap();
    assert_eq!(description.chars().count(), 140);
    assert!(description.ends_with("ä…"));
}

#[tokio::test]
async fn reviews_have_their_comments() {
    let test = HostTest::new();
    test.github.with_app(|app| {
        app.add_pull("One", "one", "main", &[]);
        let comments = [("src/a.rs", 3, "Why?"), ("src/b.rs", 9, "Rename this.")];
        app.add_review(
            1,
            "ann",
            "CHANGES_REQUESTED",
            "Please change this.",
            &comments,
        );
        app.add_review(1, "bob", "PENDING", "not submitted", &[]);
        app.add_review(1, "bob", "APPROVED", "", &[]);
        app.add_review(1, "eve", "COMMENTED", &"x".repeat(20_000), &[]);
        let pull = app.issue(1).pull.as_mut().unwrap();
        pull.reviews[2].association = "OWNER".into();
        pull.reviews[3].association = "CONTRIBUTOR".into();
    });
    let reviews = abilities(&test.host()).reviews(1).await.unwrap();
    let seen: Vec<_> = reviews
        .iter()
        .map(|each| (each.author.as_str(), each.verdict))
        .collect();
    assert_eq!(
        seen,
        [
            ("ann", ReviewVerdict::ChangesRequested),
            ("bob", ReviewVerdict::Approved),
            ("eve", ReviewVerdict::Commented),
        ]
    );
    let members: Vec<bool> = reviews.iter().map(|each| each.is_member).collect();
    assert_eq!(members, [true, true, false]);
    assert_eq!(
        reviews[0].text,
        "Please change this.\nsrc/a.rs:3: Why?\nsrc/b.rs:9: Rename this."
    );
    assert_eq!(reviews[0].commit.as_deref(), Some(COMMIT));
    assert_eq!(
        (reviews[1].text.as_str(), reviews[2].text.len()),
        ("", 16 << 10)
    );
}
