//! Rate limits, failures of the server, and unchanged responses.

use std::time::Duration;

use ralph_core::ports::{HostErrorKind, Scm as _};
use ralph_test::{FaultRule, GitHubFault, TestClock};

use super::fixture::{HostTest, abilities, draft, issues, kind};

#[tokio::test]
async fn no_request_is_sent_before_the_end_of_a_limit() {
    for (fault, seconds) in [
        (GitHubFault::SecondaryLimit(90), 90),
        (GitHubFault::PrimaryLimit, 1800),
    ] {
        let mut test = HostTest::new();
        // The server measures with the time of this machine, and so does the start of the clock.
        let now = ralph_core::ports::Clock::now(&*TestClock::running());
        test.clock = TestClock::at(&now.to_string());
        let host = test.host();
        test.github
            .plan(FaultRule::once("POST /repos/octo/app/pulls ", fault));
        let limited = kind(host.open(&draft("One", "text")).await);
        let HostErrorKind::RateLimited { until } = limited else {
            panic!("not limited: {limited}");
        };
        assert!(
            until.as_second() - now.as_second() >= seconds - 1,
            "{until}"
        );
        let before = test.github.requests().len();
        assert_eq!(kind(host.open(&draft("One", "text")).await), limited);
        assert_eq!(kind(abilities(&host).pull(1).await), limited);
        // The limit is that of the token, whichever client of the process reached it.
        assert_eq!(kind(abilities(&test.host()).pull(1).await), limited);
        assert_eq!(test.github.requests().len(), before);
        test.clock
            .advance(Duration::from_secs(1 + seconds.unsigned_abs()));
        assert_eq!(host.open(&draft("One", "text")).await.unwrap().number, 1);
    }
}

#[tokio::test]
async fn an_unavailable_server_gets_no_request_before_it_wants_one() {
    let mut test = HostTest::new();
    test.clock = TestClock::at("2026-03-01T08:00:00Z");
    test.github.with_app(|app| app.add_issue("One", "", &[]));
    for (operation, first) in [
        (
            "GET /repos/octo/app/issues/1 ",
            "status 503: Service Unavailable",
        ),
        // The response says nothing about the change, which is read afterwards.
        ("PATCH /repos/octo/app/issues/1 ", "rate limited until "),
    ] {
        test.github.state().rules.clear();
        let rule = FaultRule::always(operation, GitHubFault::UnavailableFor(90));
        test.github.plan(rule);
        let host = test.host();
        let before = test.github.requests().len();
        let failed = if operation.starts_with("GET") {
            kind(issues(&host).issue(1).await)
        } else {
            kind(issues(&host).set_body(1, "text").await)
        };
        assert!(failed.to_string().starts_with(first), "{failed}");
        assert!(matches!(
            kind(issues(&host).issue(1).await),
            HostErrorKind::RateLimited { .. }
        ));
        assert_eq!(test.github.requests().len(), before + 1);
        test.github.state().rules.clear();
        test.clock.advance(Duration::from_secs(91));
        assert!(issues(&host).issue(1).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn reading_is_repeated_and_changing_is_not() {
    let test = HostTest::new();
    let host = test.host();
    test.github.with_app(|app| app.add_issue("One", "", &[]));
    for fault in [
        GitHubFault::Status(503),
        GitHubFault::LoseResponse,
        GitHubFault::Drop,
    ] {
        let rule = FaultRule::once("GET /repos/octo/app/issues/1 ", fault.clone());
        test.github.plan(FaultRule { times: 2, ..rule });
        let issue = issues(&host).issue(1).await.unwrap();
        assert!(issue.is_some(), "{fault:?}");
    }
    test.github.plan(FaultRule::always(
        "GET /repos/octo/app/issues/1 ",
        GitHubFault::Status(500),
    ));
    let before = test.github.requests().len();
    let failed = kind(issues(&host).issue(1).await);
    assert_eq!(failed.to_string(), "status 500: Server Error");
    assert_eq!(test.github.requests().len(), before + 3);
    test.github.plan(FaultRule::always(
        "PATCH /repos/octo/app/issues/1",
        GitHubFault::Status(500),
    ));
    test.github.state().rules.remove(3);
    let before = test.github.requests().len();
    assert!(kind(issues(&host).set_body(1, "text").await).is_transient());
    let sent = test.github.requests();
    let patches = sent[before..]
        .iter()
        .filter(|line| line.starts_with("PATCH"));
    assert_eq!(patches.count(), 1);
}

#[tokio::test]
async fn an_unchanged_object_is_not_sent_again() {
    let test = HostTest::new();
    let host = test.host();
    test.github
        .with_app(|app| app.add_issue("One", "text", &[]));
    for _ in 0..3 {
        assert_eq!(issues(&host).issue(1).await.unwrap().unwrap().body, "text");
    }
    let statuses: Vec<u16> = test
        .github
        .ledger()
        .iter()
        .map(|each| each.status)
        .collect();
    assert_eq!(statuses, [200, 304, 304]);
    test.github
        .with_app(|app| app.issue(1).body = "new text".into());
    assert_eq!(
        issues(&host).issue(1).await.unwrap().unwrap().body,
        "new text"
    );
}

#[tokio::test]
async fn a_change_is_not_redirected_to_another_server() {
    let test = HostTest::new();
    let other = HostTest::new();
    let target = format!("{}/repos/octo/app/pulls", other.github.url());
    let operation = "POST /repos/octo/app/pulls ";
    test.github
        .plan(FaultRule::always(operation, GitHubFault::Redirect(target)));
    let refused = kind(test.host().open(&draft("One", "text")).await);
    assert_eq!(refused.to_string(), "redirected to another server");
    assert_eq!(other.github.requests(), [""; 0]);
    let own = format!("{}/repos/octo/app/pulls", test.github.url());
    test.github.state().rules.clear();
    test.github
        .plan(FaultRule::always(operation, GitHubFault::Redirect(own)));
    let refused = kind(test.host().open(&draft("One", "text")).await);
    assert_eq!(refused.to_string(), "too many redirects");
}
