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
    let Some(fixture) = AgentWorkFixture::prepare("opencode", steps).await else {
        return;
    };
    let (session, fixture) = fixture.run(&[]).await;
    assert_eq!(session.end, AgentEnd::Finished);
    assert_eq!(session.report.summary, "Done.");
    let file = std::fs::read_to_string(fixture.repo.join("hello.txt")).unwrap();
    assert_eq!(file, "hi\n");
    assert_eq!(session.requests.len(), 2);
    assert_eq!(
        session.requests[0].header("authorization"),
        Some("Bearer sk-phantom")
    );
}
