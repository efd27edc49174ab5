//! The real `codex`.

use std::time::Duration;

use ralph_core::ports::{AgentEnd, AgentEvent};
use ralph_test::Step;
use serde_json::json;

use super::work::{Work, Worked};

async fn ends<const N: usize>(steps: [Step; N]) -> Option<Worked> {
    let work = Work::prepare("codex", |_| steps).await?;
    Some(work.go(&[]).await.0)
}

#[tokio::test]
async fn it_finishes_two_steps() {
    let write = json!({"cmd": "echo hi > hello.txt"});
    let steps = |_: &str| [Step::tool("exec_command", write), Step::text("Done.")];
    let Some(work) = Work::prepare("codex", steps).await else {
        return;
    };
    let (worked, work) = work.go(&[]).await;
    assert_eq!(worked.end, AgentEnd::Finished);
    assert_eq!(worked.report.summary, "Done.");
    assert_eq!(worked.report.usage.total(), 220);
    let file = std::fs::read_to_string(work.repo.join("hello.txt")).unwrap();
    assert_eq!(file, "hi\n");
    assert_eq!(worked.asked.len(), 2);
    for request in &worked.asked {
        assert_eq!(request.path, "/v1/responses");
        assert_eq!(request.header("authorization"), Some("Bearer sk-phantom"));
        assert_eq!(request.json()["model"], "test-model");
    }
    let tool_done = AgentEvent::ToolDone {
        id: "item_1".into(),
        ok: true,
    };
    assert!(worked.events.contains(&tool_done), "{:?}", worked.events);
}

#[tokio::test]
async fn its_credential_is_refused() {
    let Some(worked) = ends([Step::error(401, "Incorrect API key provided")]).await else {
        return;
    };
    let AgentEnd::Unauthorized { why } = worked.end else {
        panic!("{:?}", worked.end);
    };
    assert!(why.contains("401 Unauthorized: Incorrect API key provided"));
    // It would ask six times.
    assert!(worked.asked.len() < 6, "{}", worked.asked.len());
}

#[tokio::test]
async fn the_budget_is_used_up() {
    let Some(worked) = ends([Step::error(402, "ralph: the budget is used up")]).await else {
        return;
    };
    assert_eq!(worked.end, AgentEnd::OutOfBudget);
}

#[tokio::test]
async fn its_limit_is_reached_for_long() {
    let limit = Step::error(429, "Rate limit reached").header("retry-after", "3600");
    let Some(work) = Work::prepare("codex", |_| [limit]).await else {
        return;
    };
    // It would wait for an hour.
    let (worked, _) = work.within(Duration::from_secs(4)).go(&[]).await;
    let AgentEnd::Quota { why, wait: None } = worked.end else {
        panic!("{:?}", worked.end);
    };
    assert!(why.contains("429 Too Many Requests"), "{why}");
    assert_eq!(worked.asked.len(), 1);
}

#[tokio::test]
async fn it_gets_over_a_busy_provider_and_a_broken_answer() {
    let busy = || Step::error(529, "Overloaded");
    let steps = [busy(), busy(), Step::cut("I will"), Step::text("Done.")];
    let Some(worked) = ends(steps).await else {
        return;
    };
    assert_eq!((worked.end, worked.asked.len()), (AgentEnd::Finished, 4));
}

#[tokio::test]
async fn every_answer_breaks() {
    let Some(worked) = ends([Step::cut("I will")]).await else {
        return;
    };
    assert!(
        matches!(worked.end, AgentEnd::Overloaded { .. }),
        "{:?}",
        worked.end
    );
}

#[tokio::test]
async fn it_is_killed_in_the_middle_of_its_work() {
    let kill = json!({"cmd": "kill -9 $PPID"});
    let Some(worked) = ends([Step::tool("exec_command", kill)]).await else {
        return;
    };
    let AgentEnd::Crashed { why } = worked.end else {
        panic!("{:?}", worked.end);
    };
    assert!(why.starts_with("killed by signal 9"), "{why}");
}
