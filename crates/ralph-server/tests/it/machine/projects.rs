use std::fs;

use serde_json::json;

use crate::support::{TestProject, TestServer};

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_checked_with_positions() {
    let server = TestServer::start().await;
    let text = fs::read_to_string(server.project.repo().join("ralph_task.md")).unwrap();
    let good = server.post("/api/v1/lint", &json!({"text": text})).await;
    assert_eq!(good.expect(200).json()["ok"], true);
    let broken = text.replace("test_command: test -s base.txt", "tset_command: x");
    let report = server.post("/api/v1/lint", &json!({"text": broken})).await;
    let report = report.expect(200).json();
    assert_eq!(report["ok"], false);
    let findings = report["findings"].as_array().unwrap();
    assert!(
        findings.iter().any(|finding| finding["line"].is_u64()),
        "{report}"
    );
    assert!(
        findings.iter().all(|finding| finding["fix"].is_string()),
        "{report}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_is_inspected_for_a_new_task() {
    let project = TestProject::new();
    let lock = json!({"packages": {"a": {"resolved": "https://npm.internal.example/a.tgz"}}});
    fs::write(project.repo().join("package-lock.json"), lock.to_string()).unwrap();
    fs::write(
        project.repo().join("package.json"),
        r#"{"scripts": {"test": "node --test"}}"#,
    )
    .unwrap();
    project.git(&["add", "--all"]);
    project.git(&["commit", "--quiet", "--message", "javascript"]);
    let server = TestServer::start_for(project).await;
    let report = server.get_json("/api/v1/repositories/inspection").await;
    assert_eq!(report["default_branch"], "main");
    assert_eq!(
        report["test_commands"][0]["command"], "npm test",
        "{report}"
    );
    assert_eq!(
        report["hosts"][0]["host"], "npm.internal.example",
        "{report}"
    );
    let request = json!({"sentence": "Add a healthcheck"});
    let task = server
        .post("/api/v1/templates/task", &request)
        .await
        .expect(200)
        .json();
    let text = task["text"].as_str().unwrap();
    assert!(
        text.contains("Add a healthcheck") && text.contains("npm test"),
        "{text}"
    );
    let templates = server.get_json("/api/v1/templates").await;
    assert!(templates["task"].as_str().unwrap().contains("test_command"));
    let choices = server.get_json("/api/v1/templates/choices").await;
    assert_eq!(choices["modes"], json!(["autonomous", "guided", "debug"]));
}
