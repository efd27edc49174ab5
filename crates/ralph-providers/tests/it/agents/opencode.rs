//! Tests with the real `opencode`.

use ralph_core::ports::AgentEnd;
use ralph_test::ScenarioStep;
use serde_json::json;

use super::agent_run::AgentWorkFixture;

#[tokio::test]
async fn it_finishes_two_steps() {
    let write = json!({"command": "echo hi > hello.txt", "description": "writes it"});
    let steps = |_: &str| {
        [
            ScenarioStep::tool("bash", write),
            ScenarioStep::text("Done."),
        ]
    };
    let Some(work) = AgentWorkFixture::prepare("opencode", steps).await else {
        return;
    };
    let (worked, work) = work.run(&[]).await;
    assert_eq!(worked.end, AgentEnd::Finished);
    assert_eq!(worked.report.summary, "Done.");
    let file = std::fs::read_to_string(work.repo.join("hello.txt")).unwrap();
    assert_eq!(file, "hi\n");
    assert_eq!(worked.requests.len(), 2);
    assert_eq!(
        worked.requests[0].header("authorization"),
        Some("Bearer sk-phantom")
    );
}
