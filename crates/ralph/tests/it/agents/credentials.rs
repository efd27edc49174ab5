//! The credential of an agent or a model: a stored one precedes the environment, and the plan names
//! its source.

use std::io::Write as _;
use std::process::Stdio;

use ralph_test::{FakeUpstream, ScenarioStep, UpstreamScenario};
use serde_json::Value;

use crate::project::Project;

/// A key in the format of OpenAI, assembled at run time so that secret scanners ignore it.
fn key(mark: &str) -> String {
    format!("sk-{mark}-{}", "Canary7x".repeat(5))
}

/// Stores a credential as a user would.
fn store(project: &Project, agent: &str, auth: &str, more: &[&str]) {
    let arguments = ["store-token", "--no-validate", "--store", "file"];
    let arguments = [&arguments[..], &["--agent", agent, "--auth", auth], more].concat();
    let mut storing = project
        .command(&arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = storing.stdin.take().unwrap();
    stdin
        .write_all(key(&format!("stored-{auth}")).as_bytes())
        .unwrap();
    drop(stdin);
    let stored = storing.wait_with_output().unwrap();
    assert!(stored.status.success(), "{stored:?}");
    let text = String::from_utf8_lossy(&stored.stdout).into_owned();
    let line = format!("ralph: token stored for agent {agent} (no expiry known)\n");
    assert_eq!(text, line);
}

fn plan(project: &Project, arguments: &[&str]) -> Value {
    let arguments = [&["run", "--dry-run", "--json"], arguments].concat();
    serde_json::from_str(&project.ralph(&arguments).expect(0).stdout).unwrap()
}

#[test]
fn a_stored_gateway_precedes_a_key_of_the_environment() {
    let project = Project::new().env("OPENAI_API_KEY", key("environment"));
    let run = ["--agent", "codex", "--sandbox", "local"];
    let before = plan(&project, &run);
    assert_eq!(before["agent"]["source"], "OPENAI_API_KEY");
    assert_eq!(before["agent"]["auth"], "api-key");
    store(
        &project,
        "codex",
        "gateway",
        &["--base-url", "https://gateway.example/v1"],
    );
    let file = project.home().join("tokens/codex-token.gateway.json");
    let source = format!("`{}`", file.display());
    let planned = plan(&project, &run);
    assert_eq!(planned["agent"]["source"], source.as_str());
    assert_eq!(planned["agent"]["auth"], "gateway");
    let shown = project.ralph(&[&["run", "--dry-run"], &run[..]].concat());
    let shown = shown.expect(0).stdout;
    let line = format!("agent    codex · its own model · gateway from {source}\n");
    assert!(shown.contains(&line), "{shown}");
    // `check-token` and `get-token` name the same one.
    let checked = project
        .ralph(&["check-token", "--agent", "codex"])
        .expect(0);
    let valid = format!("ralph: token valid for agent codex (from {source}, no expiry known)\n");
    assert_eq!(checked.stdout, valid);
    let got = project.ralph(&["get-token", "--agent", "codex"]).expect(0);
    assert_eq!(got.stdout, key("stored-gateway"));
    // A stored key precedes a stored gateway, as it does for `check-token`.
    store(&project, "codex", "api-key", &[]);
    assert_eq!(plan(&project, &run)["agent"]["auth"], "api-key");
    let got = project.ralph(&["get-token", "--agent", "codex"]).expect(0);
    assert_eq!(got.stdout, key("stored-api-key"));
}

#[test]
fn a_stored_credential_of_a_related_agent_precedes_the_environment() {
    let project = Project::new().env("OPENAI_API_KEY", key("environment"));
    let run = ["--agent", "opencode", "--model", "m", "--sandbox", "local"];
    store(
        &project,
        "codex",
        "gateway",
        &["--base-url", "https://gateway.example/v1"],
    );
    assert_eq!(plan(&project, &run)["agent"]["auth"], "gateway");
    let got = project
        .ralph(&["get-token", "--agent", "opencode"])
        .expect(0);
    assert_eq!(got.stdout, key("stored-gateway"));
    // Its own one comes first.
    store(&project, "opencode", "api-key", &[]);
    assert_eq!(plan(&project, &run)["agent"]["auth"], "api-key");
    let got = project
        .ralph(&["get-token", "--agent", "opencode"])
        .expect(0);
    assert_eq!(got.stdout, key("stored-api-key"));
}

#[test]
fn a_model_of_the_same_provider_uses_the_stored_credential() {
    let upstream = FakeUpstream::start(UpstreamScenario::new([
        ScenarioStep::text("hello"),
        ScenarioStep::text("hello"),
    ]));
    let project = Project::new()
        .env("OPENAI_API_KEY", key("environment"))
        .env("ANTHROPIC_API_KEY", "sk-ant-api03-environment-environment");
    let model = ["--model", "openai/gpt-5"];
    assert_eq!(plan(&project, &model)["model_key"], "OPENAI_API_KEY");
    let openai = format!("{}/v1", upstream.url());
    store(&project, "codex", "gateway", &["--base-url", &openai]);
    store(
        &project,
        "claude",
        "gateway",
        &["--base-url", &upstream.url()],
    );
    let file = project.home().join("tokens/codex-token.gateway.json");
    let source = format!("`{}`", file.display());
    assert_eq!(plan(&project, &model)["model_key"], source.as_str());
    let shown = project.ralph(&[&["run", "--dry-run"], &model[..]].concat());
    let line = format!("model    openai/gpt-5 · actions · key from {source}\n");
    let shown = shown.expect(0).stdout;
    assert!(shown.contains(&line), "{shown}");
    // The key of the environment is sent nowhere.
    project.ralph(&["models", "test", "openai/gpt-5"]);
    project.ralph(&["models", "test", "anthropic/claude-sonnet-4-6"]);
    let requests = upstream.model_requests();
    assert_eq!(requests.len(), 2);
    let bearer = format!("Bearer {}", key("stored-gateway"));
    for request in requests {
        assert_eq!(request.header("authorization"), Some(bearer.as_str()));
        assert_eq!(request.header("x-api-key"), None);
    }
    // A profile with a key of its own, and other providers, are not affected.
    project.configure(
        "models.yaml",
        "profiles:\n  own:\n    litellm_model: openai/gpt-5\n    max_output_tokens: 64\n    \
         api_key_env: OPENAI_API_KEY\n",
    );
    assert_eq!(
        plan(&project, &["--profile", "own"])["model_key"],
        "OPENAI_API_KEY"
    );
    let project = project.env("ZAI_API_KEY", "environment-key-1234");
    assert_eq!(
        plan(&project, &["--model", "zai/glm-4.7"])["model_key"],
        "ZAI_API_KEY"
    );
}

#[test]
fn an_expired_stored_key_is_not_replaced_by_the_environment() {
    let project = Project::new().env("OPENAI_API_KEY", key("environment"));
    store(&project, "codex", "api-key", &[]);
    let file = project.home().join("tokens/codex-token.api-key.json");
    let expired = format!(
        r#"{{"accessToken":"{}","expiresAt":1772359200000}}"#,
        key("old")
    );
    std::fs::write(&file, expired).unwrap();
    let why =
        "token expired for agent codex (expired 2026-03-01) — run: ralph store-token --agent codex";
    let refused = project.ralph(&["run", "--model", "openai/gpt-5"]).expect(1);
    assert_eq!(refused.stderr, format!("ralph: {why}\n"));
    let planned = plan(&project, &["--model", "openai/gpt-5"]);
    assert_eq!(planned["missing"], serde_json::json!([why]));
    assert_eq!(planned["model_key"], Value::Null);
}

#[test]
fn a_command_is_not_a_token_store() {
    let project = Project::new();
    let refused = project
        .ralph(&["check-token", "--store", "cmd:pass show key"])
        .expect(2);
    assert_eq!(
        refused.stderr,
        "ralph: invalid value `cmd:pass show key` for --store <STORE> — possible values: keychain, secret-tool, file — \
         see `ralph check-token --help`\n"
    );
}
