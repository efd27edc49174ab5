//! Tokens: replaced before they expire, and read again after a rejection.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ralph_core::ports::{HostErrorKind, Scm as _};
use ralph_test::{FakeGitHubToken, TestClock};

use super::fixture::{HostTest, StoredToken, abilities, draft, kind, token};

#[tokio::test]
async fn the_token_of_an_app_is_replaced_before_it_expires() {
    let mut test = HostTest::new();
    test.clock = TestClock::running();
    let host = test.app_host();
    abilities(&host).repository().await.unwrap();
    let created = |test: &HostTest| {
        let requests = test.github.requests();
        let created = requests
            .iter()
            .filter(|line| line.ends_with("access_tokens"));
        created.count()
    };
    abilities(&host).repository().await.unwrap();
    assert_eq!(created(&test), 1);
    let age = Duration::from_mins(51);
    test.clock.advance(age);
    test.github.state().clock_ahead = age.as_secs().cast_signed();
    abilities(&host).repository().await.unwrap();
    assert_eq!(created(&test), 2);
    let access = abilities(&host).validate().await.unwrap();
    assert_eq!(
        (access.account.as_str(), access.missing.len()),
        ("ralph-app[bot]", 0)
    );
}

#[tokio::test]
async fn a_rejected_token_of_an_app_is_replaced_once() {
    let test = HostTest::new();
    let host = test.app_host();
    abilities(&host).repository().await.unwrap();
    test.github.state().tokens.clear();
    // A change, too: the server has rejected it before doing anything.
    assert_eq!(host.open(&draft("One", "text")).await.unwrap().number, 1);
    assert_eq!(test.github.with_app(|app| app.pulls().len()), 1);
    let login = host.git_credential().unwrap().login().await.unwrap();
    assert_eq!(login.user, "x-access-token");
    let shown = format!("the token is {}", login.password.expose());
    assert_eq!(
        test.redactor.redact(&shown),
        "the token is [REDACTED:GitHub_installation_token]"
    );
}

#[tokio::test]
async fn a_rejected_token_of_a_user_is_read_again_once() {
    let mut test = HostTest::new();
    let new = format!("ghp_{}", "n3W".repeat(12));
    let store = Arc::new(StoredToken {
        token: Mutex::new(token()),
        reads: Mutex::new(0),
    });
    test.source = Some(store.clone());
    let host = test.host();
    abilities(&host).repository().await.unwrap();
    assert_eq!(*store.reads.lock().unwrap(), 0);
    test.github.revoke_token(&token());
    let rejected = kind(abilities(&host).repository().await);
    assert!(
        matches!(rejected, HostErrorKind::Unauthorized { .. }),
        "{rejected}"
    );
    assert_eq!(*store.reads.lock().unwrap(), 1);
    test.github
        .add_token(&new, FakeGitHubToken::Classic("repo"));
    store.token.lock().unwrap().clone_from(&new);
    assert_eq!(host.open(&draft("One", "text")).await.unwrap().number, 1);
    let login = host.git_credential().unwrap().login().await.unwrap();
    assert_eq!(login.password.expose(), new);
    assert_eq!(test.redactor.redact(&new), "[REDACTED:GitHub_token]");
    // Without a source, the rejection is final.
    test.source = None;
    let before = test.github.requests().len();
    assert!(matches!(
        kind(abilities(&test.host()).repository().await),
        HostErrorKind::Unauthorized { .. }
    ));
    assert_eq!(test.github.requests().len(), before + 1);
}
