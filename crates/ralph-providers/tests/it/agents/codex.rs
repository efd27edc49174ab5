//! Tests with the real `codex`.

use std::time::Duration;

use ralph_core::ports::{AgentEnd, AgentEvent};
use ralph_test::ScenarioStep;
use serde_json::json;

use super::agent_run::{AgentTestOutcome, AgentWorkFixture};

async fn outcome<const N: usize>(steps: [ScenarioStep; N]) -> Option<AgentTestOutcome> {
    let fixture = AgentWorkFixture::prepare("codex", |_| steps).await?;
    Some(fixture.run(&[]).await.0)
}

#[tokio::test]
async fn it_finishes_two_steps() {
    let write = json!({"cmd": "echo hi > hello.txt"});
    let steps = |_: &str| {
        [
            ScenarioStep::tool("exec_command", write),
            ScenarioStep::text("Done."),
        ]
    };
    let Some(fixture) = AgentWorkFixture::prepare("codex", steps).await else {
        return;
    };
    let (session, fixture) = fixture.run(&[]).await;
    assert_eq!(session.end, AgentEnd::Finished);
    assert_eq!(session.report.summary, "Done.");
    assert_eq!(session.report.usage.total(), 220);
    let file = std::fs::read_to_string(fixture.repo.join("hello.txt")).unwrap();
    assert_eq!(file, "hi\n");
    assert_eq!(session.requests.len(), 2);
    for request in &session.requests {
        assert_eq!(request.path, "/v1/responses");
        assert_eq!(request.header("authorization"), Some("Bearer sk-phantom"));
        assert_eq!(request.json()["model"], "test-model");
    }
    let tool_done = AgentEvent::ToolDone {
        id: "item_1".into(),
        ok: true,
    };
    assert!(session.events.contains(&tool_done), "{:?}", session.events);
}

#[tokio::test]
async fn its_credential_is_refused() {
    let Some(session) = outcome([ScenarioStep::error(401, "Incorrect API key provided")]).await
    else {
        return;
    };
    let AgentEnd::Unauthorized { why } = session.end else {
        panic!("{:?}", session.end);
    };
    assert!(why.contains("401 Unauthorized: Incorrect API key provided"));
    // Left alone, it would retry six times.
    assert!(session.requests.len() < 6, "{}", session.requests.len());
}

#[tokio::test]
async fn the_budget_is_used_up() {
    let Some(session) = outcome([ScenarioStep::error(402, "ralph: the budget is used up")]).await
    else {
        return;
    };
    assert_eq!(session.end, AgentEnd::OutOfBudget);
}

#[tokio::test]
async fn its_limit_is_reached_for_long() {
    let limit = ScenarioStep::error(429, "Rate limit reached").with_header("retry-after", "3600");
    let Some(fixture) = AgentWorkFixture::prepare("codex", |_| [limit]).await else {
        return;
    };
    // Left alone, it would wait for an hour.
    let (session, _) = fixture.with_timeout(Duration::from_secs(4)).run(&[]).await;
    let AgentEnd::Quota { why, wait: None } = session.end else {
        panic!("{:?}", session.end);
    };
    assert!(why.contains("429 Too Many Requests"), "{why}");
    assert_eq!(session.requests.len(), 1);
}

#[tokio::test]
async fn it_recovers_from_an_overload_and_a_broken_reply() {
    let busy = || ScenarioStep::error(529, "Overloaded");
    let steps = [
        busy(),
        busy(),
        ScenarioStep::cut("I will"),
        ScenarioStep::text("Done."),
    ];
    let Some(session) = outcome(steps).await else {
        return;
    };
    assert_eq!(
        (session.end, session.requests.len()),
        (AgentEnd::Finished, 4)
    );
}

#[tokio::test]
async fn every_answer_breaks() {
    let Some(session) = outcome([ScenarioStep::cut("I will")]).await else {
        return;
    };
    assert!(
        matches!(session.end, AgentEnd::Overloaded { .. }),
        "{:?}",
        session.end
    );
}

#[tokio::test]
async fn it_is_killed_in_the_middle_of_its_work() {
    let kill = json!({"cmd": "kill -9 $PPID"});
    let Some(session) = outcome([ScenarioStep::tool("exec_command", kill)]).await else {
        return;
    };
    let AgentEnd::Crashed { why } = session.end else {
        panic!("{:?}", session.end);
    };
    assert!(why.starts_with("killed by signal 9"), "{why}");
}
