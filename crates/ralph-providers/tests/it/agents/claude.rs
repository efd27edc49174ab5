//! Tests with the real `claude`.

use std::time::Duration;

use ralph_core::ports::{AgentEnd, AgentEvent};
use ralph_test::ScenarioStep;
use serde_json::json;

use super::agent_run::{AgentTestOutcome, AgentWorkFixture};

async fn outcome<const N: usize>(
    steps: [ScenarioStep; N],
    variables: &[(&str, &str)],
) -> Option<AgentTestOutcome> {
    let fixture = AgentWorkFixture::prepare("claude", |_| steps).await?;
    Some(fixture.run(variables).await.0)
}

fn write(repo: &str) -> ScenarioStep {
    let input = json!({"file_path": format!("{repo}/hello.txt"), "content": "hi\n"});
    ScenarioStep::tool("Write", input)
}

#[tokio::test]
async fn it_finishes_two_steps() {
    let steps = |repo: &str| [write(repo), ScenarioStep::text("Done.")];
    let Some(fixture) = AgentWorkFixture::prepare("claude", steps).await else {
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
        let authorization = request.header("authorization");
        assert_eq!(authorization, Some("Bearer sk-ant-oat01-phantom"));
        assert_eq!(request.json()["model"], "claude-sonnet-5-5");
    }
    let tools: Vec<_> = session
        .events
        .iter()
        .filter(|event| matches!(event, AgentEvent::Tool { .. } | AgentEvent::ToolDone { .. }))
        .collect();
    assert_eq!(tools.len(), 2, "{tools:?}");
}

#[tokio::test]
async fn it_takes_a_message_while_it_works() {
    let steps = |repo: &str| {
        let slow = json!({"command": "read -t 2 < <(:;tail -f /dev/null)", "description": "waits"});
        [
            ScenarioStep::tool("Bash", slow),
            write(repo),
            ScenarioStep::text("Done."),
        ]
    };
    let Some(fixture) = AgentWorkFixture::prepare("claude", steps).await else {
        return;
    };
    let (session, _) = fixture.with_message("use tabs, please").run(&[]).await;
    assert_eq!(session.end, AgentEnd::Finished);
    let acknowledged: Vec<_> = session
        .events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::Acknowledged { text } => Some(text.as_str()),
            AgentEvent::Started { .. }
            | AgentEvent::Text { .. }
            | AgentEvent::Tool { .. }
            | AgentEvent::ToolDone { .. }
            | AgentEvent::Usage { .. }
            | AgentEvent::Waiting { .. } => None,
        })
        .collect();
    assert_eq!(acknowledged, ["use tabs, please"]);
    let second = String::from_utf8(session.requests[1].body.clone()).unwrap();
    assert!(second.contains("use tabs, please"), "{second}");
}

#[tokio::test]
async fn its_credential_is_refused() {
    let rejected = [ScenarioStep::error(401, "invalid bearer token")];
    let Some(session) = outcome(rejected, &[]).await else {
        return;
    };
    assert_eq!(
        session.end,
        AgentEnd::Unauthorized {
            why: "Failed to authenticate. API Error: 401 invalid bearer token".into()
        }
    );
}

#[tokio::test]
async fn the_budget_is_used_up() {
    let spent = "ralph: the budget is used up";
    let Some(session) = outcome([ScenarioStep::error(402, spent)], &[]).await else {
        return;
    };
    assert_eq!(
        (session.end, session.requests.len()),
        (AgentEnd::OutOfBudget, 1)
    );
}

#[tokio::test]
async fn the_budget_is_used_up_in_the_middle_of_an_answer() {
    let spent = "ralph: the budget is used up";
    let steps = [
        ScenarioStep::fail("I will", 402, spent),
        ScenarioStep::error(402, spent),
    ];
    let Some(session) = outcome(steps, &[]).await else {
        return;
    };
    assert_eq!(
        (session.end, session.requests.len()),
        (AgentEnd::OutOfBudget, 2)
    );
}

#[tokio::test]
async fn its_limit_is_reached_for_long() {
    let reset = jiff::Timestamp::now().as_second() + 7200;
    let limit = ScenarioStep::error(429, "This request would exceed your account's rate limit")
        .with_header("retry-after", "7200")
        .with_header("anthropic-ratelimit-unified-status", "rejected")
        .with_header("anthropic-ratelimit-unified-reset", &reset.to_string())
        .with_header(
            "anthropic-ratelimit-unified-representative-claim",
            "five_hour",
        );
    let Some(session) = outcome([limit], &[]).await else {
        return;
    };
    let AgentEnd::Quota {
        wait: Some(wait), ..
    } = session.end
    else {
        panic!("{:?}", session.end);
    };
    assert!((7100..=7200).contains(&wait.as_secs()), "{wait:?}");
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
    let Some(session) = outcome(steps, &[]).await else {
        return;
    };
    assert_eq!(session.end, AgentEnd::Finished);
    let waits = |event: &&AgentEvent| matches!(event, AgentEvent::Waiting { .. });
    assert!(session.events.iter().filter(waits).count() >= 2);
}

#[tokio::test]
async fn every_answer_breaks() {
    let retries = [("CLAUDE_CODE_MAX_RETRIES", "1")];
    let Some(session) = outcome([ScenarioStep::cut("I will")], &retries).await else {
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
    let kill = json!({"command": "kill -9 $PPID", "description": "ends it"});
    let Some(session) = outcome([ScenarioStep::tool("Bash", kill)], &[]).await else {
        return;
    };
    assert_eq!(
        session.end,
        AgentEnd::Crashed {
            why: "killed by signal 9, without any output".into()
        }
    );
}

#[tokio::test]
async fn it_times_out() {
    let slow = |_: &str| [ScenarioStep::text("Done.").with_stall(Duration::from_mins(1))];
    let Some(fixture) = AgentWorkFixture::prepare("claude", slow).await else {
        return;
    };
    let (session, _) = fixture.with_timeout(Duration::from_secs(4)).run(&[]).await;
    assert_eq!(
        (session.end, session.requests.len()),
        (AgentEnd::TimedOut, 1)
    );
}
