use super::fixture::{DILIGENT, IssueTest};
use crate::support::TestRalph;

#[test]
fn invalid_arguments_are_usage_errors() {
    let ralph = TestRalph::new();
    for arguments in [
        &["--poll", "--issue", "3"][..],
        &["--issue", "3", "--interval", "10s"],
        &["--issue", "3", "--timeout", "10s"],
        &["--issue"],
        &["--issue", "x"],
        &["--issue", "0"],
        &["--interval", "10s"],
        &["--timeout", "4h"],
        &["--rebuild"],
        &["--push"],
        &["issue"],
        &["poll", "--interval", "1.5h"],
        &["poll", "--interval", "0"],
        &["poll", "--workers", "0"],
        &["poll", "--workers", "17"],
        &["issue", "3", "--profile", "a", "--agent", "b"],
    ] {
        let output = ralph.command(arguments).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.starts_with("ralph: "), "{arguments:?}: {error}");
    }
}

#[test]
fn a_repository_without_issues_is_refused() {
    let test = IssueTest::new(DILIGENT);
    test.remote.project.git(&["remote", "remove", "origin"]);
    let refused = test.remote.project.ralph(&["issue", "1"]).expect(2);
    assert!(
        refused.stderr.contains("it has no remote `origin`"),
        "{}",
        refused.stderr
    );
    test.remote
        .project
        .git(&["remote", "add", "origin", "../elsewhere"]);
    let refused = test.remote.project.ralph(&["poll"]).expect(2);
    assert!(
        refused.stderr.contains("its remote `origin` is a path"),
        "{}",
        refused.stderr
    );
}

#[test]
fn an_app_needs_a_list_of_authors() {
    let test = IssueTest::new(DILIGENT);
    let key = ralph_test::FakeGitHub::APP_KEY;
    let test = test.change(|project| {
        project
            .without_env("GITHUB_PAT")
            .env("GITHUB_APP_ID", "4711")
            .env("GITHUB_APP_PRIVATE_KEY_PEM", key)
    });
    let project = &test.remote.project;
    let refused = project.ralph(&["poll", "--timeout", "0"]).expect(2);
    assert!(
        refused
            .stderr
            .contains("`issues.authors` has `@me`, and the credential has no user"),
        "{}",
        refused.stderr
    );
    project.configure("ralph.toml", "[issues]\nauthors = [\"octocat\"]\n");
    let polled = project.ralph(&["poll", "--timeout", "0"]).expect(0);
    assert!(polled.stdout.contains("by octocat"), "{}", polled.stdout);
}
