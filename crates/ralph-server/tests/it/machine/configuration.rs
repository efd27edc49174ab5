use std::fs;

use serde_json::{Value, json};

use crate::support::{TestProject, TestServer};

#[tokio::test(flavor = "multi_thread")]
async fn settings_name_their_sources_and_proposals_wait_for_an_approval() {
    let project = TestProject::new();
    fs::write(
        project.repo().join("ralph.toml"),
        "[sandbox.network]\npolicy = \"allowlist\"\nallowed = [\"example.org\"]\n",
    )
    .unwrap();
    let server = TestServer::start_for(project).await;
    let directory = server.project.repo().canonicalize().unwrap();
    let path = format!("/api/v1/config?directory={}", directory.display());
    let config = server.get_json(&path).await;
    let settings = config["settings"].as_array().unwrap();
    let provider = settings
        .iter()
        .find(|setting| setting["key"] == "sandbox.provider");
    assert_eq!(provider.unwrap()["source"], "default");
    let pending = config["trust"]["pending"].as_array().unwrap().clone();
    assert_eq!(pending.len(), 2, "{config}");
    let proposal = |entry: &Value| json!({"file": entry["file"], "key": entry["key"], "value": entry["value"]});

    let shown: Vec<_> = pending.iter().map(proposal).collect();
    let mut other = shown.clone();
    other[1]["value"] = "evil.example".into();
    let approve = |proposals: Vec<Value>| json!({"directory": directory, "proposals": proposals});
    let refused = server
        .post("/api/v1/config/approvals", &approve(other))
        .await;
    assert_eq!(
        refused.expect(409).json()["type"],
        "urn:ralph:problem:other-proposals"
    );
    let unchanged = server.get_json(&path).await;
    assert_eq!(unchanged["trust"]["pending"].as_array().unwrap().len(), 2);

    let shown = approve(shown);
    let approved = server.post("/api/v1/config/approvals", &shown).await;
    assert_eq!(approved.expect(200).json()["pending"], json!([]));
    let config = server.get_json(&path).await;
    let settings = config["settings"].as_array().unwrap();
    let allowed = settings
        .iter()
        .find(|setting| setting["key"] == "sandbox.network.allowed");
    assert_eq!(allowed.unwrap()["value"], json!(["example.org"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_directories_of_the_machine_are_accepted() {
    let server = TestServer::start().await;
    for directory in ["relative", "/does/not/exist", "/etc/passwd", "/tmp%00"] {
        for resource in [
            "config",
            "models",
            "agents",
            "tokens",
            "repositories/inspection",
        ] {
            let reply = server
                .get(&format!("/api/v1/{resource}?directory={directory}"))
                .await;
            let problem = reply.expect(422).json();
            assert_eq!(problem["type"], "urn:ralph:problem:invalid-directory");
        }
    }
    let unknown = server.get("/api/v1/config?directroy=/tmp").await;
    assert_eq!(unknown.status.as_u16(), 400, "{}", unknown.text());
}
