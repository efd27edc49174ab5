//! The search for a credential, and its errors.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use ralph_test::{FakeCertificate, FakeGitHub, FakeGitHubToken, git};
use serde_json::json;

use super::fixture::{ScmTest, classic};
use crate::support::RalphOutput;

#[test]
fn without_a_credential_all_searched_places_are_listed() {
    ScmTest::new().assert_error(
        1,
        "ralph: no GitHub credential was found for `github.com` — searched GITHUB_APP_ID with GITHUB_APP_PRIVATE_KEY_PEM, GITHUB_PAT, GITHUB_TOKEN, GH_TOKEN in the environment and in `.env`, the token store (for http://[..]), and `gh`, which is not installed — run `ralph store-token --agent github --base-url http://[..]`, or set GITHUB_PAT",
    );
}

#[test]
fn the_first_credential_wins_and_its_source_is_shown() {
    let mut test = ScmTest::new();
    let token = |name: &str| format!("ghp_{}_{}", name.to_lowercase(), "c4N4ry".repeat(5));
    let project = test.ralph.project().to_owned();
    let seen = |test: &ScmTest| test.check_json().1["credential"]["source"].clone();
    for name in [
        "gh",
        "stored",
        "dotenv",
        "GH_TOKEN",
        "GITHUB_TOKEN",
        "GITHUB_PAT",
    ] {
        let kind = FakeGitHubToken::Classic("repo");
        test.github.state().tokens.insert(token(name), kind);
    }
    // The weakest first; each further one takes precedence.
    let programs = tempfile::tempdir().unwrap();
    let gh = programs.path().join("gh");
    let script = format!(
        "#!/bin/sh\ntest \"$*\" = 'auth token --hostname github.com' && echo {}\n",
        token("gh")
    );
    fs::write(&gh, script).unwrap();
    fs::set_permissions(&gh, fs::Permissions::from_mode(0o755)).unwrap();
    test = test.env(
        "PATH",
        &format!("{}:/usr/bin:/bin", programs.path().display()),
    );
    assert_eq!(seen(&test), "gh auth token");
    let directory = test.ralph.state().tokens();
    fs::create_dir_all(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    let stored = json!({"accessToken": token("stored"), "baseUrl": test.github.url()});
    let file = directory.join("github-token.gateway.json");
    fs::write(&file, stored.to_string()).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(
        seen(&test),
        format!("the token store (`{}`)", file.display())
    );
    let dotenv = format!(
        "GITHUB_PAT={}\nGITHUB_API_URL=https://attacker.example\n",
        token("dotenv")
    );
    fs::write(project.join(".env"), dotenv).unwrap();
    assert_eq!(seen(&test), "GITHUB_PAT in .env");
    for name in ["GH_TOKEN", "GITHUB_TOKEN", "GITHUB_PAT"] {
        test = test.env(name, &token(name));
        assert_eq!(seen(&test), name);
    }
    test = test.env("GITHUB_APP_ID", "4711");
    test = test.env(
        "GITHUB_APP_PRIVATE_KEY_PEM",
        &FakeGitHub::APP_KEY.replace('\n', "\\n"),
    );
    assert_eq!(seen(&test), "GITHUB_APP_ID");
}

#[test]
fn a_repository_cannot_choose_the_destination_of_a_credential() {
    let attacker = FakeGitHub::start().unwrap();
    let test = ScmTest::with_classic();
    let settings = format!("[github]\napi_url = \"{}\"\n", attacker.url());
    fs::write(test.ralph.project().join("ralph.toml"), settings).unwrap();
    fs::write(
        test.ralph.project().join(".env"),
        format!("GITHUB_API_URL={}\n", attacker.url()),
    )
    .unwrap();
    let own = format!("[github]\napi_url = \"{}\"\n", test.github.url());
    test.ralph.configure("ralph.toml", &own);
    let mut command = test.command(&["scm", "check", "octo/app"]);
    let output = command.env_remove("GITHUB_API_URL").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(attacker.requests(), [""; 0]);
}

#[test]
fn an_app_acts_as_its_installation() {
    let test = ScmTest::with_app();
    let (code, report) = test.check_json();
    assert_eq!(code, 0, "{report}");
    assert_eq!(report["acts_as"], "ralph-app[bot]");
    assert_eq!(
        test.github.requests(),
        [
            "GET /app",
            "GET /repos/octo/app/installation",
            "POST /app/installations/1/access_tokens",
            "GET /repos/octo/app",
            "GET /repos/octo/app/branches/main",
        ]
    );
    let permissions = json!({"metadata": "read", "contents": "read", "issues": "write"});
    test.github.state().installation_permissions = permissions;
    let (code, report) = test.check_json();
    let problems = report["problems"].as_array().unwrap();
    assert_eq!((code, problems.len()), (1, 4), "{report}");
    assert_eq!(
        problems[0]["fix"],
        "add contents (write) to the permissions of the App, and accept them for its installation"
    );
}

#[test]
fn an_app_that_is_not_installed_lists_its_installations() {
    let test = ScmTest::with_app();
    {
        let mut state = test.github.state();
        state.installations = vec!["one".into(), "two".into(), "three".into()];
        state.page_size = 2;
    }
    test.assert_error(
        1,
        "ralph: the App `ralph-app` is not installed on `octo/app` — it is installed for `one`, `two`, `three`; GET /repos/octo/app/installation failed: not found, or no access: Not Found (request id FA4E:0001) — check the name, or install the App: https://github.com/apps/ralph-app/installations/new",
    );
}

#[test]
fn a_wrong_clock_is_found_in_the_response() {
    let test = ScmTest::with_app();
    test.github.state().clock_ahead = 3600;
    let output = test.check();
    assert_eq!(output.code, 1);
    assert!(
        output.stderr.contains("the clock of this machine is 36") // 3600, or 3601 on a busy machine
            && output.stderr.contains(" s behind")
            && output.stderr.contains("set the clock of this machine"),
        "{output:?}"
    );
}

#[test]
fn invalid_credentials_are_explained_and_never_shown() {
    let pem = "-----BEGIN RSA PRIVATE KEY-----\nY2FuYXJ5\n-----END RSA PRIVATE KEY-----\n";
    for (variables, code, error) in [
        (
            vec![("GITHUB_PAT", classic())],
            1,
            "ralph: GitHub rejected the personal access token (classic) of GITHUB_PAT — GET /user failed: the credential is rejected: Bad credentials (request id FA4E:0001) — it may have expired or been revoked: create a new token and set GITHUB_PAT to it",
        ),
        (
            vec![("GITHUB_PAT", "two words".to_owned())],
            2,
            "ralph: the GitHub token of GITHUB_PAT is not valid — a token is 8 to 16384 printable characters without spaces — copy the token again",
        ),
        (
            vec![("GITHUB_APP_ID", "1".to_owned())],
            2,
            "ralph: the GitHub App has no complete credential — GITHUB_APP_ID is set, but GITHUB_APP_PRIVATE_KEY_PEM is not — set GITHUB_APP_PRIVATE_KEY_PEM, or unset GITHUB_APP_ID",
        ),
        (
            vec![
                ("GITHUB_APP_ID", "1".to_owned()),
                ("GITHUB_APP_PRIVATE_KEY_PEM", "x".to_owned()),
            ],
            2,
            "ralph: GITHUB_APP_PRIVATE_KEY_PEM is not valid — it is not a private key in PEM format — set it to the content of the `.pem` file from the page of the App's settings",
        ),
        (
            vec![
                ("GITHUB_APP_ID", "1".to_owned()),
                ("GITHUB_APP_PRIVATE_KEY_PEM", pem.to_owned()),
            ],
            2,
            "ralph: GITHUB_APP_PRIVATE_KEY_PEM is not valid — it is not an RSA key of 2048 to 8192 bits — set it to the content of the `.pem` file from the page of the App's settings",
        ),
        (
            vec![
                ("GITHUB_APP_ID", "1".to_owned()),
                ("GITHUB_APP_PRIVATE_KEY_PEM", FakeGitHub::APP_KEY.to_owned()),
            ],
            1,
            "ralph: GitHub rejected the GitHub App of GITHUB_APP_ID — GET /app failed: the credential is rejected: Bad credentials (request id FA4E:0001) — check GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY_PEM: the key must belong to the App",
        ),
    ] {
        let mut test = ScmTest::new();
        for (name, value) in variables {
            test = test.env(name, &value);
        }
        test.assert_error(code, error);
    }
}

/// The address of `origin` decides where a credential goes, and another person may have written it.
#[test]
fn a_credential_of_the_environment_is_only_for_hosts_that_the_user_chose() {
    let certificate = FakeCertificate::new("127.0.0.1");
    let server = FakeGitHub::start_tls(&certificate).unwrap();
    let token = FakeGitHubToken::Classic("repo, workflow");
    server.state().tokens.insert(classic(), token);
    let test = ScmTest::with_classic();
    let project = test.ralph.project();
    fs::write(project.join("authority.pem"), certificate.authority()).unwrap();
    let url = format!("{}/octo/app", server.url());
    git(project, &["init", "--quiet"]);
    git(project, &["remote", "add", "origin", &url]);
    let check = |api: Option<&str>, args: &[&str]| {
        let mut command = test.command(&[&["scm", "check"], args].concat());
        command.env_remove("GITHUB_API_URL");
        command.envs(api.map(|api| ("GITHUB_API_URL", api)));
        command.env("SSL_CERT_FILE", project.join("authority.pem"));
        RalphOutput::from(command.output().unwrap())
    };
    for api in [None, Some("https://api.github.com")] {
        let refused = check(api, &[]);
        assert_eq!(refused.code, 1, "{refused:?}");
        let fix = "set GITHUB_API_URL=https://127.0.0.1:";
        assert!(refused.stderr.contains(fix), "{refused:?}");
    }
    assert_eq!(server.requests(), [""; 0]);
    assert_eq!(test.github.requests(), [""; 0]);
    let api = server.url();
    check(Some(&api), &[]);
    assert_eq!(server.requests()[0], "GET /user");
    let before = server.requests().len();
    // A typed address is the user's choice, and its API is on the same host.
    check(None, &[&url]);
    assert!(server.requests().len() > before);
}
