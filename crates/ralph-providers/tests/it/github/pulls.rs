//! Pull requests: opened once, updated, adopted.

use ralph_core::ports::{HostErrorKind, PullDraft, PullState, Scm as _};
use ralph_test::{FakeGitHubToken, GitHubFault};

use super::fixture::{COMMIT, HostTest, abilities, draft, kind};

fn ready(title: &str, body: &str) -> PullDraft {
    PullDraft {
        state: PullState::Open,
        ..draft(title, body)
    }
}

#[tokio::test]
async fn a_pull_request_is_opened_updated_and_marked_ready() {
    let test = HostTest::new();
    let host = test.host();
    let opened = host.open(&draft("One", "text")).await.unwrap();
    assert_eq!((opened.number, opened.state), (1, PullState::Draft));
    assert_eq!(opened.head.as_str(), COMMIT);
    let updated = host.update(1, &ready("Two", "new text")).await.unwrap();
    assert_eq!(updated.state, PullState::Open);
    let pull = test.github.with_app(|app| app.pulls().remove(0));
    assert_eq!(pull.title, "Two");
    assert_eq!(pull.labels, ["ralph", "size: s"]);
    assert!(pull.body.contains("\nnew text\n"), "{}", pull.body);
    assert!(!pull.pull.unwrap().is_draft);
    let before = test.github.mutations().len();
    host.update(1, &ready("Two", "new text")).await.unwrap();
    assert_eq!(test.github.mutations().len(), before, "nothing changed");
    assert_eq!(
        test.github.mutations(),
        [
            "POST /repos/octo/app/pulls",
            "POST /repos/octo/app/issues/1/labels",
            "POST /graphql",
            "PATCH /repos/octo/app/pulls/1",
        ]
    );
}

#[tokio::test]
async fn a_repository_without_drafts_gets_a_pull_request_that_is_ready() {
    let test = HostTest::new();
    test.github.state().are_drafts_supported = false;
    let host = test.host();
    let opened = host.open(&draft("One", "text")).await.unwrap();
    assert_eq!((opened.number, opened.state), (1, PullState::Open));
    host.update(1, &draft("One", "new text")).await.unwrap();
    host.update(1, &ready("One", "last text")).await.unwrap();
    let mutations = test.github.mutations();
    assert!(
        !mutations.iter().any(|line| line.contains("graphql")),
        "{mutations:?}"
    );
}

#[tokio::test]
async fn the_edits_of_a_person_survive() {
    let test = HostTest::new();
    let host = test.host();
    host.open(&draft("One", "text")).await.unwrap();
    host.update(1, &draft("One", "text")).await.unwrap();
    test.github.with_app(|app| {
        let pull = app.issue(1);
        pull.title = "A better title".into();
        pull.body = format!("Please read.\n\n{}\n\nThanks!", pull.body);
        pull.labels.clear();
    });
    host.update(1, &draft("Two", "new text")).await.unwrap();
    let pull = test.github.with_app(|app| app.issue(1).clone());
    assert_eq!(pull.title, "A better title");
    assert!(pull.body.starts_with("Please read.\n\n<!-- ralph:pull "));
    assert!(pull.body.ends_with("<!-- ralph:end -->\n\nThanks!"));
    assert!(pull.body.contains("new text"));
    assert_eq!(pull.labels, [""; 0]);
}

#[tokio::test]
async fn an_existing_pull_request_is_adopted() {
    let test = HostTest::new();
    let host = test.host();
    let number = test.github.with_app(|app| {
        app.add_pull("Other", "ralph/other", "main", &[]);
        app.add_pull("Mine", "ralph/one", "main", &[])
    });
    let adopted = host.open(&draft("One", "text")).await.unwrap();
    assert_eq!((adopted.number, adopted.state), (number, PullState::Open));
    let pulls = test.github.with_app(|app| app.pulls());
    assert_eq!(pulls.len(), 2);
    assert_eq!(pulls[1].title, "Mine");
    assert!(pulls[1].body.contains("text"));
    assert_eq!(pulls[1].labels, ["ralph", "size: s"]);
    let found = host.find("ralph/one").await.unwrap().unwrap();
    assert_eq!(found.number, number);
    assert_eq!(host.find("ralph/none").await.unwrap(), None);
}

#[tokio::test]
async fn a_closed_pull_request_is_not_changed_and_a_new_one_is_opened() {
    let test = HostTest::new();
    let host = test.host();
    host.open(&draft("One", "text")).await.unwrap();
    test.github.with_app(|app| app.close(1));
    let closed = host.update(1, &draft("Two", "new text")).await.unwrap();
    assert_eq!(closed.state, PullState::Closed);
    let second = host.open(&draft("Two", "new text")).await.unwrap();
    assert_eq!(second.number, 2);
    test.github.with_app(|app| app.merge(2));
    assert_eq!(
        abilities(&host).pull(2).await.unwrap().state,
        PullState::Merged
    );
    let last = abilities(&host).last_pull_of("ralph/one").await.unwrap();
    assert_eq!(last.unwrap().number, 2);
    assert_eq!(
        test.github.with_app(|app| app.issue(1).title.clone()),
        "One"
    );
}

#[tokio::test]
async fn a_server_with_the_paths_of_an_enterprise_is_used() {
    let mut test = HostTest::new();
    test.prefix = "/api/v3";
    let host = test.host();
    host.open(&draft("One", "text")).await.unwrap();
    host.update(1, &ready("One", "text")).await.unwrap();
    let requests = test.github.requests();
    assert!(
        requests.contains(&"POST /api/graphql".to_owned()),
        "{requests:?}"
    );
    assert!(requests.contains(&"POST /api/v3/repos/octo/app/pulls".to_owned()));
    assert!(
        !test
            .github
            .with_app(|app| app.issue(1).pull.clone().unwrap().is_draft)
    );
}

#[tokio::test]
async fn a_renamed_repository_is_used_under_its_new_name() {
    let test = HostTest::new();
    let host = test.host();
    test.github.state().rename("octo/app", "octo/new");
    let opened = host.open(&draft("One", "text")).await.unwrap();
    assert_eq!(opened.url, "https://github.com/octo/new/pull/1");
    let repository = abilities(&host).repository().await.unwrap();
    assert_eq!(repository.full_name, "octo/new");
    let before = test.github.requests().len();
    host.update(1, &ready("Two", "text")).await.unwrap();
    let requests = test.github.requests();
    let old = requests[before..]
        .iter()
        .filter(|line| line.contains("octo/app"));
    assert_eq!(old.count(), 0, "{requests:?}");
    let pulls = test.github.state().repo("octo/new").pulls();
    assert_eq!(pulls.len(), 1);
}

#[tokio::test]
async fn refusals_have_kinds() {
    let test = HostTest::new();
    let host = test.host();
    host.open(&draft("One", "text")).await.unwrap();
    test.github
        .with_app(|app| app.protected.insert("main".into()));
    host.check_push("ralph/one").await.unwrap();
    let protected = kind(host.check_push("main").await);
    assert_eq!(
        protected,
        HostErrorKind::Protected {
            branch: "main".into()
        }
    );
    let branch = abilities(&host).branch("main").await.unwrap().unwrap();
    assert_eq!((branch.head.as_str(), branch.protected), (COMMIT, true));
    test.github.state().archive("octo/app");
    let archived = kind(host.update(1, &draft("Two", "text")).await);
    assert_eq!(archived, HostErrorKind::Archived);
    assert!(abilities(&host).repository().await.unwrap().archived);
    test.github.state().fault = Some(GitHubFault::Blocked);
    let blocked = kind(abilities(&host).pull(1).await);
    let message = "not permitted: blocked for legal reasons: Repository access blocked";
    assert_eq!(blocked.to_string(), message);
    test.github.state().fault = None;
    test.github.state().repositories.clear();
    let missing = kind(host.open(&draft("One", "text")).await);
    assert!(
        matches!(missing, HostErrorKind::NotFound { .. }),
        "{missing}"
    );
}

#[tokio::test]
async fn the_missing_permission_is_named() {
    let test = HostTest::new();
    let denied = FakeGitHubToken::FineGrained(&["pull_requests=write"]);
    test.github.add_token(&super::fixture::token(), denied);
    let refused = kind(test.host().open(&draft("One", "text")).await);
    let HostErrorKind::Forbidden { permission, .. } = &refused else {
        panic!("not forbidden: {refused}");
    };
    assert_eq!(permission.as_deref(), Some("pull_requests=write"));
    let public = FakeGitHubToken::Classic("public_repo");
    test.github.add_token(&super::fixture::token(), public);
    let host = test.host();
    let access = abilities(&host).validate().await.unwrap();
    assert_eq!(access.account, "octocat");
    let missing = [
        "contents=write",
        "pull_requests=write",
        "issues=write",
        "checks=read",
        "statuses=write",
    ];
    assert_eq!(access.missing, missing);
}

#[tokio::test]
async fn open_pull_requests_are_listed_with_their_files() {
    let test = HostTest::new();
    test.github.state().page_size = 2;
    test.github.with_app(|app| {
        app.add_pull("One", "one", "main", &["b", "a"]);
        app.add_pull("Two", "two", "main", &["e", "d", "c", "b", "a"]);
        app.add_pull("Three", "three", "main", &[]);
        let closed = app.add_pull("Four", "four", "main", &["a"]);
        app.close(closed);
        app.add_issue("Five", "", &[]);
    });
    let pulls = abilities(&test.host()).open_pulls().await.unwrap();
    let seen: Vec<_> = pulls
        .iter()
        .map(|pull| (pull.number, pull.head.as_str(), pull.files.join(" ")))
        .collect();
    assert_eq!(
        seen,
        [
            (1, "one", "a b".to_owned()),
            (2, "two", "a b c d e".to_owned()),
            (3, "three", String::new()),
        ]
    );
}
