//! Tests of a delivery to a host that is not available or limits requests.

use std::cell::Cell;
use std::time::Duration;

use ralph_core::ports::HostErrorKind;
use ralph_core::run::Command;

use super::host_request::{HostPatience, git_outage, host_request};
use super::host_tests::{finished_work, policy, statuses, try_deliver};
use super::publish::{DeliveryOutcome, deliver_remaining, push_if_missing};
use crate::error::RunError;
use crate::git::GitError;
use crate::mailbox::Mailbox;
use crate::run_fixture::RunFixture;
use crate::scripted_host::host_error;

#[tokio::test]
async fn an_unavailable_host_is_waited_for() {
    let (mut fixture, host) = finished_work(policy(true), &["build+"]).await;
    let down = || HostErrorKind::Unavailable {
        cause: "status 502".into(),
    };
    host.script().check_errors = [down(), down()].into();
    assert_eq!(
        try_deliver(&mut fixture).await.unwrap(),
        DeliveryOutcome::Success
    );
    let waits = [
        "waiting_ci",
        "waiting_host",
        "waiting_ci",
        "waiting_host",
        "waiting_ci",
    ];
    let found = statuses(&fixture);
    assert_eq!(found[found.len() - 6..found.len() - 1], waits);
}

#[tokio::test]
async fn a_limit_that_lasts_for_more_than_an_hour_is_an_error() {
    let (mut fixture, host) = finished_work(policy(true), &["build+"]).await;
    let until = jiff::Timestamp::now() + Duration::from_hours(2);
    host.script().check_errors = [HostErrorKind::RateLimited { until }].into();
    let error = try_deliver(&mut fixture).await.unwrap_err();
    assert!(matches!(error, RunError::HostOutage { .. }), "{error}");
    assert!(
        error.hint().ends_with("then `ralph resume`"),
        "{}",
        error.hint()
    );
}

#[tokio::test]
async fn a_response_ends_the_patience_and_a_shortened_wait_counts_as_measured() {
    let (mut fixture, _) = finished_work(policy(true), &["build+"]).await;
    let mailbox = Mailbox::new(fixture.run.recorder.dir.commands());
    let until = jiff::Timestamp::now() + Duration::from_mins(40);
    let requests = Cell::new(0_u32);
    let mut patience = HostPatience::default();
    let request = |_| {
        let number = requests.get() + 1;
        requests.set(number);
        if number < 4 {
            // The user ends the wait for the host.
            let id = format!("{number:03}");
            mailbox.send(&id, Command::Resume).unwrap();
        }
        async move {
            match number {
                1..4 => Err(host_error(HostErrorKind::RateLimited { until })),
                _ => Ok(()),
            }
        }
    };
    Box::pin(host_request(&mut fixture.run, &mut patience, request))
        .await
        .unwrap();
    assert_eq!(requests.get(), 4);
    assert_eq!(patience, HostPatience::default());
}

#[tokio::test]
async fn git_waits_for_a_host_that_is_not_available() {
    let (mut fixture, host) = finished_work(policy(true), &["build+"]).await;
    let waits = |fixture: &RunFixture| {
        let statuses = statuses(fixture).into_iter();
        statuses.filter(|status| status == "waiting_host").count()
    };
    host.script().git_outage = 2;
    Box::pin(deliver_remaining(&mut fixture.run)).await.unwrap();
    assert_eq!(fixture.events_of(&["push_started", "pushed"]).len(), 2);
    assert_eq!(waits(&fixture), 2);
    host.script().git_outage = 1;
    Box::pin(push_if_missing(&mut fixture.run)).await.unwrap();
    assert_eq!(waits(&fixture), 3);
    assert_eq!(fixture.events_of(&["pushed"]).len(), 1);
}

#[test]
fn errors_of_the_network_are_outages() {
    for (message, expected) in [
        (
            "fatal: unable to access 'https://h/r/': Could not resolve host: h",
            true,
        ),
        (
            "fatal: unable to access 'https://h/r/': Failed to connect to h port 443 after 1 ms: Couldn't connect to server",
            true,
        ),
        (
            "fatal: unable to access 'https://h/r/': Recv failure: Connection reset by peer",
            true,
        ),
        (
            "fatal: unable to access 'https://h/r/': Connection timed out",
            true,
        ),
        (
            "fatal: unable to access 'https://h/r/': The requested URL returned error: 503",
            true,
        ),
        ("fatal: the remote end hung up unexpectedly", true),
        ("fatal: early EOF", true),
        (
            "fatal: unable to access 'https://h/r/': The requested URL returned error: 403",
            false,
        ),
        ("! [rejected] x -> x (fetch first)", false),
        (
            "! [remote rejected] x -> x (protected branch hook declined)",
            false,
        ),
        (
            "fatal: unable to access 'https://h/r/': server certificate verification failed",
            false,
        ),
    ] {
        let error = GitError::Failed {
            command: "push".into(),
            message: message.into(),
        };
        assert_eq!(git_outage(&error).is_some(), expected, "{message}");
    }
}
