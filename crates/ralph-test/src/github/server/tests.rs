//! The server with raw requests and with git.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use super::*;
use crate::git::{create_repository, git};

const TOKEN: &str = "test-token-0123456789";

fn start() -> FakeGitHub {
    let github = FakeGitHub::start().unwrap();
    github.add_token(TOKEN, FakeGitHubToken::Classic("repo"));
    github
}

/// Sends a request and returns the head and the body of the response; both are empty if it is lost.
fn send(github: &FakeGitHub, operation: &str, headers: &str, body: &Value) -> (String, Value) {
    let mut stream = TcpStream::connect(github.address).unwrap();
    let body = body.to_string();
    write!(
        stream,
        "{operation} HTTP/1.1\r\nauthorization: Bearer {TOKEN}\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or(("", ""));
    (
        head.to_owned(),
        serde_json::from_str(body).unwrap_or(Value::Null),
    )
}

fn try_git(directory: &Path, arguments: &[&str]) -> Output {
    Command::new("git")
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ASKPASS", "/bin/false")
        .output()
        .unwrap()
}

#[test]
fn a_push_updates_the_head_of_a_pull_request() {
    let (github, place) = (start(), tempfile::tempdir().unwrap());
    let (source, root) = (place.path().join("source"), place.path().join("bare"));
    std::fs::create_dir_all(&source).unwrap();
    std::fs::create_dir_all(&root).unwrap();
    create_repository(&source);
    github.serve_git(&root);
    github.host_repository("octo/app", &source);
    let anonymous = github.git_url("octo/app");
    let address = anonymous.replace("://", &format!("://x-access-token:{TOKEN}@"));
    let refused = try_git(place.path(), &["clone", &anonymous, "refused"]);
    assert!(!refused.status.success());
    git(place.path(), &["clone", "--quiet", &address, "work"]);
    let work = place.path().join("work");
    let push = |branch: &str, file: &str| {
        std::fs::write(work.join(file), "x".repeat(3 << 20)).unwrap();
        git(&work, &["add", "."]);
        git(&work, &["commit", "--quiet", "--message=Change"]);
        try_git(&work, &["push", "origin", &format!("HEAD:{branch}")])
    };
    assert!(push("ralph/one", "a.txt").status.success());
    let pull = json!({"title": "One", "head": "ralph/one", "base": "main", "draft": true});
    let (_, opened) = send(&github, "POST /repos/octo/app/pulls", "", &pull);
    let head = || git(&work, &["rev-parse", "HEAD"]);
    assert_eq!(opened["head"]["sha"], head());
    let (head_of_second, _) = send(&github, "POST /repos/octo/app/pulls", "", &pull);
    assert!(
        head_of_second.starts_with("HTTP/1.1 422"),
        "{head_of_second}"
    );
    assert!(push("ralph/one", "b.txt").status.success());
    let (_, read) = send(&github, "GET /repos/octo/app/pulls/1", "", &Value::Null);
    assert_eq!(read["head"]["sha"], head());
    let (_, files) = send(
        &github,
        "GET /repos/octo/app/pulls/1/files",
        "",
        &Value::Null,
    );
    assert_eq!(files[1]["filename"], "b.txt");
    github.with_app(|app| app.protected.insert("main".into()));
    let protected = push("main", "c.txt");
    let errors = String::from_utf8_lossy(&protected.stderr).into_owned();
    assert!(errors.contains("GH006: Protected branch"), "{errors}");
    github.revoke_token(TOKEN);
    assert!(!push("ralph/one", "d.txt").status.success());
}

#[test]
fn a_lost_response_has_an_effect_and_a_dropped_request_has_none() {
    let github = start();
    let comment = json!({"body": "hello"});
    let operation = "POST /repos/octo/app/issues/1/comments";
    github.with_app(|app| app.add_issue("One", "", &["bug"]));
    for (fault, comments) in [
        (GitHubFault::LoseResponse, 1),
        (GitHubFault::Drop, 1),
        (GitHubFault::Status(502), 1),
        (GitHubFault::StatusAfter(502), 2),
    ] {
        github.plan(FaultRule::once(operation, fault));
        send(&github, operation, "", &comment);
        assert_eq!(github.with_app(|app| app.comments_on(1).len()), comments);
    }
    send(&github, operation, "", &comment);
    assert_eq!(github.with_app(|app| app.comments_on(1).len()), 3);
    assert_eq!(github.mutations(), [operation; 3]);
}

#[test]
fn an_unchanged_list_is_not_sent_again_and_pages_are_linked() {
    let github = start();
    for number in 1..=3 {
        github.with_app(|app| app.add_issue(&format!("Issue {number}"), "", &["spec"]));
    }
    let list = "GET /repos/octo/app/issues?labels=spec&per_page=2";
    let (head, first) = send(&github, list, "", &Value::Null);
    assert_eq!(first.as_array().unwrap().len(), 2);
    assert!(head.contains("page=2>; rel=\"next\""), "{head}");
    let tag = head
        .lines()
        .find_map(|line| line.strip_prefix("etag: "))
        .unwrap();
    let known = format!("if-none-match: {tag}\r\n");
    let (head, _) = send(&github, list, &known, &Value::Null);
    assert!(head.starts_with("HTTP/1.1 304"), "{head}");
    github.with_app(|app| app.issue(3).title = "Changed".into());
    let (head, _) = send(&github, list, &known, &Value::Null);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
}
