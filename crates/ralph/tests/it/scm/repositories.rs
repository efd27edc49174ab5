//! The states of a repository and of its server.

use ralph_test::{FakeCertificate, FakeGitHub, FakeGitHubToken, GitHubFault, git};
use serde_json::json;

use super::fixture::{ScmTest, classic, fine_grained};
use crate::support::TestRalph;

#[test]
fn a_usable_repository_is_described() {
    let test = ScmTest::with_classic();
    let output = test.check();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    snapbox::assert_data_eq!(
        output.stdout,
        snapbox::str![[r"
  host            github.com (http://127.0.0.1:[..])
  repository      octo/app, private
  default branch  main, not protected
  credential      personal access token (classic) from GITHUB_PAT
  acts as         octocat
  metadata        ok: needs read, has write
  contents        ok: needs write, has write
  pull_requests   ok: needs write, has write
  issues          ok: needs write, has write
  checks          ok: needs read, has write
  statuses        ok: needs write, has write
  workflows       ok: needs write, has write
  rate limit      4990 of 5000 requests left until 2100-01-01T00:00:00Z

"]]
    );
    for exchange in test.github.ledger() {
        let headers = exchange.request.headers;
        assert_eq!(headers["x-github-api-version"], "2022-11-28");
        assert_eq!(headers["accept"], "application/vnd.github+json");
        assert!(headers["user-agent"].starts_with("ralph/"));
    }
}

#[test]
fn a_renamed_repository_is_found_under_its_new_name() {
    let test = ScmTest::with_classic();
    let old = ("octo/app".to_owned(), "octo/new".to_owned());
    {
        let mut state = test.github.state();
        let repository = state.repositories.remove("octo/app").unwrap();
        state.repositories.insert("octo/new".into(), repository);
        state.renamed.extend([old]);
        state.are_branches_protected = true;
    }
    let (code, report) = test.check_json();
    let seen = (&report["repository"], &report["renamed_from"]);
    assert_eq!((code, seen), (0, (&json!("octo/new"), &json!("octo/app"))));
    assert_eq!(report["default_branch_protected"], true);
    let requests = test.github.requests();
    assert_eq!(
        requests.last().unwrap(),
        "GET /repos/octo/new/branches/main"
    );
}

#[test]
fn each_reason_against_a_repository_is_reported() {
    let test = ScmTest::with_token(&classic(), FakeGitHubToken::Classic("public_repo"));
    let archived = json!({
        "private": false, "default_branch": "main", "archived": true,
        "permissions": {"admin": false, "push": false, "pull": true},
    });
    let key = "octo/app".to_owned();
    test.github
        .state()
        .repositories
        .insert(key.clone(), archived);
    test.assert_error(
        1,
        "ralph: repository `octo/app` is archived — it accepts no branches and no pull requests — ask its owner to unarchive it, or choose another repository
ralph: `octocat` may not push to `octo/app` — the role in the repository does not include it — ask an administrator of the repository for the role Write",
    );
    let private = json!({"private": true, "default_branch": "main"});
    test.github.state().repositories.insert(key, private);
    let (code, report) = test.check_json();
    let problems = report["problems"].as_array().unwrap();
    let problems: Vec<&str> = problems
        .iter()
        .map(|each| each["what"].as_str().unwrap())
        .collect();
    assert_eq!(code, 1);
    assert_eq!(
        problems,
        [
            "the permission contents (write) is missing",
            "the permission pull_requests (write) is missing",
            "the permission issues (write) is missing",
            "the permission checks (read) is missing",
            "the permission statuses (write) is missing",
        ]
    );
}

#[test]
fn a_fine_grained_token_is_probed_by_reading() {
    let token = FakeGitHubToken::FineGrained(&["issues"]);
    let test = ScmTest::with_token(&fine_grained(), token);
    test.assert_error(
        1,
        "ralph: the permission issues (write) is missing — ralph needs it to label and comment on issues — add issues (write) to the permissions of the token",
    );
    let token = FakeGitHubToken::FineGrained(&[]);
    let test = ScmTest::with_token(&fine_grained(), token);
    let (code, report) = test.check_json();
    assert_eq!(code, 0, "{report}");
    assert_eq!(report["permissions"][1]["granted"], "read, write unknown");
    assert_eq!(report["credential"]["expires"], "2099-12-31 10:00:00 UTC");
}

#[test]
fn failures_of_the_server_say_what_to_do() {
    let test = ScmTest::with_classic();
    for (fault, requests, error) in [
        (
            GitHubFault::PrimaryLimit,
            1,
            "ralph: the rate limit of the personal access token (classic) of GITHUB_PAT is exceeded — GET /user failed: rate limited until [..] (request id FA4E:0001) — try again after [..]Z",
        ),
        (
            GitHubFault::SecondaryLimit(90),
            1,
            "ralph: the rate limit of the personal access token (classic) of GITHUB_PAT is exceeded — GET /user failed: rate limited until [..] (request id FA4E:0001) — try again after [..]Z",
        ),
        (
            GitHubFault::Status(502),
            3,
            "ralph: cannot get a response from http://[..] — GET /user failed: status 502: Server Error (request id FA4E:0001) — check the host and the network, or try again later; `github.api_url` or GITHUB_API_URL sets another address",
        ),
        (
            GitHubFault::SingleSignOn,
            1,
            "ralph: the personal access token (classic) of GITHUB_PAT is not authorised for single sign-on — GET /user failed: not permitted: Resource protected by organization SAML enforcement. (request id FA4E:0001) — authorise it at https://github.com/orgs/octo/sso?authorization_request=1",
        ),
    ] {
        test.github.state().fault = Some(fault);
        let before = test.github.ledger().len();
        test.assert_error(1, error);
        assert_eq!(
            test.github.ledger().len(),
            before + requests,
            "only a failure of the server is followed by the same request"
        );
    }
}

#[test]
fn a_credential_is_not_sent_to_the_target_of_a_redirect() {
    let test = ScmTest::with_classic();
    let other = FakeGitHub::start().unwrap();
    let target = format!("{}/user", other.url());
    test.github.state().fault = Some(GitHubFault::Redirect(target));
    test.assert_error(
        1,
        "ralph: http://[..] did not answer like GitHub — GET /user failed: redirected to another server (request id FA4E:0001) — check that the host is GitHub or GitHub Enterprise Server, and correct `github.api_url` or GITHUB_API_URL if one of them is set",
    );
    assert_eq!(other.requests(), [""; 0]);
}

#[test]
fn a_missing_repository_and_an_unknown_host_are_reported() {
    let test = ScmTest::with_classic();
    test.github.state().repositories.clear();
    test.assert_error(
        1,
        "ralph: there is no repository `octo/app` on github.com — GET /repos/octo/app failed: not found, or no access: Not Found (request id FA4E:0001) — check the name, and that the personal access token (classic) of GITHUB_PAT may read it; for a path, write `./octo/app`",
    );
    let ralph = TestRalph::new();
    let args = ["scm", "check", "https://host.invalid/o/r"];
    let output = ralph.command(&args).env("GITHUB_PAT", classic()).output();
    let stderr = String::from_utf8(output.unwrap().stderr).unwrap();
    let start =
        "ralph: cannot get a response from https://host.invalid/api/v3 — GET /user failed: ";
    assert!(stderr.starts_with(start), "{stderr}");
}

#[test]
fn a_certificate_must_be_trusted() {
    let certificate = FakeCertificate::new("127.0.0.1");
    let github = FakeGitHub::start_tls(&certificate).unwrap();
    let token = FakeGitHubToken::Classic("repo");
    github.state().tokens.insert(classic(), token);
    let ralph = TestRalph::new();
    let check = || {
        let mut command = ralph.command(&["scm", "check", "octo/app"]);
        command.env("GITHUB_API_URL", github.url());
        command.env("GITHUB_PAT", classic());
        command
    };
    let output = check().output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("is signed by an authority that this machine does not trust — if it is your own server or a proxy, set `SSL_CERT_FILE`"),
        "{stderr}"
    );
    let file = ralph.project().join("authority.pem");
    std::fs::write(&file, certificate.authority()).unwrap();
    let output = check().env("SSL_CERT_FILE", file).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn the_repository_of_the_working_directory_is_the_default() {
    let test = ScmTest::with_classic();
    let project = test.ralph.project().to_owned();
    let outside = test.run(&["scm", "check"]);
    assert_eq!(outside.code, 1, "{outside:?}");
    let error = "ralph: there is no git repository at `.` — ";
    assert!(outside.stderr.starts_with(error), "{outside:?}");
    git(&project, &["init", "-q"]);
    let local = test.run(&["scm", "check"]);
    assert_eq!((local.code, local.stderr.as_str()), (0, ""));
    assert!(
        local.stdout.starts_with("  host            local\n"),
        "{local:?}"
    );
    let origin = "https://someone:canary-password@github.com/octo/app.git";
    git(&project, &["remote", "add", "origin", origin]);
    let remote = test.run(&["scm", "check", "--json"]);
    assert_eq!(remote.code, 0, "{remote:?}");
    assert!(
        remote.stdout.contains(r#""repository":"octo/app""#),
        "{remote:?}"
    );
    assert!(!remote.stdout.contains("canary-password"));
    git(&project, &["remote", "set-url", "origin", "ext::sh -c x"]);
    let odd = test.run(&["scm", "check"]);
    assert_eq!(odd.code, 1, "{odd:?}");
    assert!(
        odd.stderr.contains("is not on a supported source host"),
        "{odd:?}"
    );
    let invalid = test.run(&["scm", "check", "http://host/o/r"]);
    assert_eq!(invalid.code, 2, "{invalid:?}");
}
