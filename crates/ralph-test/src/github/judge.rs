//! Judges of GitHub's own making: its description of the API, its GraphQL schema, and two of its clients.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::state::GitHubExchange;

/// The operations that the description does not contain.
const UNDESCRIBED: [&str; 6] = [
    "/reviews",
    "/annotations",
    "GET /repos/octo/app/check-runs/",
    "/actions/jobs/",
    "/job-logs/",
    ".git/",
];

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

/// Returns a file of GitHub's description, which is not part of the repository.
#[expect(clippy::print_stderr, reason = "skipped tests say so")]
fn description(name: &str) -> Option<PathBuf> {
    let file = format!("shared/contracts/github/{name}");
    let mut directories = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let found = directories.find_map(|directory| {
        let path = directory.join(&file);
        path.exists().then_some(path)
    });
    if found.is_none() {
        eprintln!("skipped: {file} is not there");
    }
    found
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
    let is_described = |exchange: &&GitHubExchange| {
        let operation = exchange.operation();
        let path = operation.split('?').next().unwrap_or_default();
        let comments_of_review = path.contains("/pulls/") && path.ends_with("/comments");
        !exchange.is_lost
            && exchange.status != 304
            && !is_graphql(exchange)
            && !comments_of_review
            && !UNDESCRIBED.iter().any(|part| operation.contains(part))
    };
    let exchanges: Vec<Value> = ledger.iter().filter(is_described).map(recorded).collect();
    if let Some(file) = description("github-subset.json").filter(|_| !exchanges.is_empty()) {
        judge("openapi", &[], &file, &exchanges);
    }
    let documents: Vec<Value> = ledger.iter().filter(is_graphql).map(recorded).collect();
    let schema = description("github-schema-15.26.1.graphql");
    if let Some(file) = schema.filter(|_| !documents.is_empty()) {
        judge("github", &["graphql"], &file, &documents);
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
fn judge(script: &str, arguments: &[&str], description: &Path, exchanges: &[Value]) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("exchanges.json");
    let text = Value::from(exchanges.to_vec()).to_string();
    std::fs::write(&file, text).expect("the exchanges can be written");
    let mut command = script_command(script);
    command.args(arguments).arg(description).arg(file);
    assert_success(command);
}

/// Runs a client of GitHub, `octokit` or `pygithub`, which performs ralph's operations on a server.
///
/// # Panics
/// If the client cannot be installed, or complains.
#[track_caller]
pub fn run_github_client(client: &str, url: &str, token: &str, commit: &str) {
    let mut command = script_command("github");
    command.args([client, url, token, commit]);
    assert_success(command);
}

fn script_command(script: &str) -> Command {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts");
    Command::new(scripts.join(script))
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
