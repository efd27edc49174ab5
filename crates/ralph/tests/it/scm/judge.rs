//! GitHub's own description of its API judges the requests of the client and the responses of the fake.

use std::path::{Path, PathBuf};
use std::process::Command;

use ralph_test::{FakeGitHubToken, GitHubExchange};
use serde_json::{Value, json};

use super::fixture::{ScmTest, fine_grained};

/// Returns the description, which is not part of the repository.
fn description() -> Option<PathBuf> {
    let file = "shared/contracts/github/github-subset.json";
    let mut directories = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    directories.find_map(|directory| Some(directory.join(file)).filter(|path| path.exists()))
}

fn recorded(exchange: &GitHubExchange) -> Value {
    let mut words = exchange.request.line.split(' ');
    json!({
        "method": words.next(), "url": words.next(), "request_body": exchange.request.body,
        "status": exchange.status, "body": exchange.body,
    })
}

#[test]
fn requests_and_responses_match_githubs_description() {
    let Some(description) = description() else {
        eprintln!("skipped: shared/contracts/github/github-subset.json is not there");
        return;
    };
    let (app, missing, renamed) = (
        ScmTest::with_app(),
        ScmTest::with_app(),
        ScmTest::with_classic(),
    );
    missing.github.state().installations = vec!["other".into()];
    {
        let mut state = renamed.github.state();
        let repository = state.repositories.remove("octo/app").unwrap();
        state.repositories.insert("octo/new".into(), repository);
        let names = ("octo/app".to_owned(), "octo/new".to_owned());
        state.renamed.extend([names]);
    }
    let probed = ScmTest::with_token(&fine_grained(), FakeGitHubToken::FineGrained(&[]));
    let rejected = ScmTest::new().env("GITHUB_PAT", &fine_grained());
    let mut exchanges = Vec::new();
    for test in [app, missing, renamed, probed, rejected] {
        test.check();
        exchanges.extend(test.github.ledger().iter().map(recorded));
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("exchanges.json");
    std::fs::write(&file, Value::from(exchanges).to_string()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/openapi");
    let judged = Command::new(script)
        .arg(description)
        .arg(file)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (found, summary) = (text(&judged.stdout), text(&judged.stderr));
    assert!(judged.status.success(), "{found}{summary}");
}
