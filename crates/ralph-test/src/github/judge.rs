//! Judges of GitHub's own making: its description of the API, its GraphQL schema, and two of its clients.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::state::GitHubExchange;

/// The requests that are none of the API: stored logs, and git.
const OUTSIDE_THE_API: [&str; 2] = ["/job-logs/", ".git/"];

/// Returns whether GitHub describes an exchange. For missing logs of a job it describes no response.
fn is_described(exchange: &GitHubExchange) -> bool {
    let operation = exchange.operation();
    let has_no_log = exchange.status == 404 && operation.ends_with("/logs");
    !exchange.is_lost
        && exchange.status != 304
        && !has_no_log
        && !OUTSIDE_THE_API.iter().any(|part| operation.contains(part))
}

/// Returns whether the test has to be skipped because `RALPH_TEST_NO_GITHUB_TOOLS` is set.
#[must_use]
#[expect(clippy::print_stderr, reason = "skipped tests say so")]
pub fn skip_without_github_tools() -> bool {
    let value = std::env::var_os("RALPH_TEST_NO_GITHUB_TOOLS");
    let is_disabled = value.is_some_and(|value| !value.is_empty());
    if is_disabled {
        eprintln!("skipped: RALPH_TEST_NO_GITHUB_TOOLS is set");
    }
    is_disabled
}

/// Validates recorded exchanges against GitHub's description of its REST API and its GraphQL schema.
///
/// # Panics
/// If a request or a response violates the description.
#[track_caller]
pub fn judge_github(ledger: &[GitHubExchange]) {
    if skip_without_github_tools() {
        return;
    }
    let is_graphql = |exchange: &&GitHubExchange| exchange.operation().ends_with("/graphql");
    let (documents, requests): (Vec<_>, Vec<_>) = ledger.iter().partition(is_graphql);
    let requests = requests
        .into_iter()
        .filter(|exchange| is_described(exchange));
    for (kind, exchanges) in [
        ("openapi", requests.map(recorded).collect::<Vec<Value>>()),
        ("graphql", documents.into_iter().map(recorded).collect()),
    ] {
        if !exchanges.is_empty() {
            judge(kind, &exchanges);
        }
    }
}

fn recorded(exchange: &GitHubExchange) -> Value {
    let mut words = exchange.request.line.split(' ');
    let (method, url) = (words.next(), words.next().unwrap_or_default());
    let url = url.strip_prefix("/api/v3").unwrap_or(url);
    json!({
        "method": method, "url": url, "request_body": exchange.request.body,
        "status": exchange.status, "body": exchange.body,
    })
}

#[track_caller]
fn judge(kind: &str, exchanges: &[Value]) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("exchanges.json");
    let text = Value::from(exchanges.to_vec()).to_string();
    std::fs::write(&file, text).expect("the exchanges can be written");
    let mut command = judge_command();
    command.arg(kind).arg(file);
    assert_success(command);
}

/// Runs a client of GitHub, `octokit` or `pygithub`, which performs ralph's operations on a server.
///
/// # Panics
/// If the client cannot be installed, or complains.
#[track_caller]
pub fn run_github_client(client: &str, url: &str, token: &str, commit: &str) {
    let mut command = judge_command();
    command.args([client, url, token, commit]);
    assert_success(command);
}

fn judge_command() -> Command {
    Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/github"))
}

#[track_caller]
fn assert_success(mut command: Command) {
    let output = command.output().expect("the script can be started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (found, summary) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success(),
        "{found}{summary}set RALPH_TEST_NO_GITHUB_TOOLS=1 to skip this test"
    );
}
