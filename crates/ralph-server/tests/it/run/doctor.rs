//! Consultations of the doctor and the application of its report.

use serde_json::{Value, json};

use super::{below, paused_run, question};
use crate::support::{TestProject, reply};

/// A reply that only matches the doctor's prompt.
fn diagnosis() -> Value {
    json!({
        "when": "You are the doctor of a Ralph loop",
        "usage": {"input_tokens": 10, "output_tokens": 10},
        "reply": {
            "summary": "it asks too much",
            "patterns": ["questions"],
            "root_causes": ["an unclear task"],
            "guardrails": [{"name": "decide", "trigger": "a choice", "instruction": "take the first"}],
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_is_requested_and_applied() {
    let project = TestProject::new();
    project.write_script(&[reply(&[question()]), diagnosis()]);
    let (server, run) = paused_run(project).await;
    let path = below(&run, "/diagnostics");
    let before = server.get_json(&path).await;
    assert_eq!(
        (&before["consultation"], &before["report"]),
        (&json!(0), &json!(null))
    );
    let none = server
        .post(&below(&run, "/diagnostics/apply"), &json!(null))
        .await
        .expect(409);
    assert!(
        none.json()["detail"]
            .as_str()
            .unwrap()
            .contains("no report to apply")
    );
    let asked = server.post(&path, &json!(null)).await.expect(200).json();
    assert_eq!(asked["done"], true);
    let report = server.get_json(&path).await;
    assert_eq!(report["report"]["summary"], "it asks too much");
    assert!(
        report["text"]
            .as_str()
            .unwrap()
            .contains("it asks too much")
    );
    let attention = server.get_json(&below(&run, "/attention")).await;
    assert_eq!(attention["items"][1]["kind"], "doctor_report");
    server
        .post(&below(&run, "/diagnostics/apply"), &json!(null))
        .await
        .expect(200);
    let guardrails = server.get_json(&below(&run, "/guardrails")).await;
    assert!(
        guardrails["text"]
            .as_str()
            .unwrap()
            .contains("### sign: decide")
    );
    let audit = server.get_json(&below(&run, "/audit")).await;
    assert_eq!(audit["green"], true, "{audit}");
    server.stop().await;
}
