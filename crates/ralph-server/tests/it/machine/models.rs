use std::fs;

use serde_json::json;

use crate::support::{TestProject, TestServer};

/// The beginning of a key that no response may contain.
const CANARY: &str = "sk-ant-api03-canary";

#[tokio::test(flavor = "multi_thread")]
async fn profiles_have_models_and_a_model_is_tested() {
    let project = TestProject::new();
    let script = project.path("ready.jsonl");
    let ready = json!({"summary": "ready", "actions": []});
    fs::write(&script, json!({"reply": ready}).to_string()).unwrap();
    let server = TestServer::start_for(project).await;
    let profiles = server.get_json("/api/v1/profiles").await;
    assert!(
        profiles["profiles"]
            .as_array()
            .is_some_and(|list| !list.is_empty())
    );
    let models = server.get_json("/api/v1/models").await;
    let profiles = models["profiles"].as_array().unwrap();
    let priced = profiles
        .iter()
        .find(|entry| entry["price"]["input"].is_number());
    let priced = priced.unwrap_or_else(|| panic!("no price in {models}"));
    assert!(priced["price_source"]["kind"].is_string(), "{priced}");
    for entry in profiles.iter().filter(|entry| !entry["key"].is_null()) {
        assert_eq!(entry["key"]["set"], json!(null), "{entry}");
    }

    let model = format!("scripted:{}", script.display());
    let tested = server
        .post("/api/v1/models/test", &json!({"model": model}))
        .await;
    let tested = tested.expect(200).json();
    assert_eq!(
        (&tested["usable"], &tested["problem"]),
        (&json!(true), &json!(null))
    );
    let missing = json!({"model": "no-such-profile"});
    server
        .post("/api/v1/models/test", &missing)
        .await
        .expect(422);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_have_states_and_never_values() {
    let key = format!("{CANARY}-0123456789");
    let project = TestProject::new().with_variable("ANTHROPIC_API_KEY", &key);
    let server = TestServer::start_for(project).await;
    let tokens = server.get("/api/v1/tokens").await.expect(200);
    let state = |agent: &str| {
        let json = tokens.json();
        let tokens = json["tokens"].as_array().unwrap();
        let found = tokens.iter().find(|token| token["agent"] == agent).unwrap();
        found["state"].as_str().unwrap().to_owned()
    };
    assert_eq!(state("claude"), "found");
    assert_eq!(state("codex"), "missing");
    let agents = server.get("/api/v1/agents").await.expect(200);
    let json = agents.json();
    let agents_list = json["agents"].as_array().unwrap();
    let claude = agents_list
        .iter()
        .find(|agent| agent["name"] == "claude")
        .unwrap();
    assert_eq!(claude["credential"]["mode"], "api-key");
    assert_eq!(claude["usable"], true);
    let missing = server.post("/api/v1/tokens/codex/check", &json!({})).await;
    assert_eq!(missing.expect(200).json()["accepted"], false);
    server
        .post("/api/v1/tokens/nobody/check", &json!({}))
        .await
        .expect(422);
    for reply in [tokens, agents] {
        assert!(!reply.text().contains(CANARY), "{}", reply.text());
    }
}
