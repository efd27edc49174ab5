//! Tests with the real `claude`.

use std::time::Duration;

use ralph_core::ports::{AgentEnd, AgentEvent};
use ralph_test::ScenarioStep;
use serde_json::json;

use super::agent_run::{AgentTestOutcome, AgentWorkFixture};

async fn outcome<const N: usize>(
    steps: [ScenarioStep; N],
    switches: &[(&str, &str)],
) -> Option<AgentTestOutcome> {
    let work = AgentWorkFixture::prepare("claude", |_| steps).await?;
    Some(work.run(switches).await.0)
}

fn write(repo: &str) -> ScenarioStep {
    let input = json!({"file_path": format!("{repo}/hello.txt"), "content": "hi\n"});
    ScenarioStep::tool("Write", input)
}

#[tokio::test]
async fn it_finishes_two_steps() {
    let steps = |repo: &str| [write(repo), ScenarioStep::text("Done.")];
    let Some(work) = AgentWorkFixture::prepare("claude", steps).await else {
        return;
    };
    let (worked, work) = work.run(&[]).await;
    assert_eq!(worked.end, AgentEnd::Finished);
    assert_eq!(worked.report.summary, "Done.");
    assert_eq!(worked.report.usage.total(), 220);
    let file = std::fs::read_to_string(work.repo.join("hello.txt")).unwrap();
    assert_eq!(file, "hi\n");
    assert_eq!(worked.requests.len(), 2);
    for request in &worked.requests {
        let authorization = request.header("authorization");
        assert_eq!(authorization, Some("Bearer sk-ant-oat01-phantom"));
        assert_eq!(request.json()["model"], "claude-sonnet-5-5");
    }
    let tools: Vec<_> = worked
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
    let Some(work) = AgentWorkFixture::prepare("claude", steps).await else {
        return;
    };
    let (worked, _) = work.with_message("use tabs, please").run(&[]).await;
    assert_eq!(worked.end, AgentEnd::Finished);
    let acknowledged: Vec<_> = worked
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
    let second = String::from_utf8(worked.requests[1].body.clone()).unwrap();
    assert!(second.contains("use tabs, please"), "{second}");
}

#[tokio::test]
async fn its_credential_is_refused() {
    let refused = [ScenarioStep::error(401, "invalid bearer token")];
    let Some(worked) = outcome(refused, &[]).await else {
        return;
    };
    assert_eq!(
        worked.end,
        AgentEnd::Unauthorized {
            why: "Failed to authenticate. API Error: 401 invalid bearer token".into()
        }
    );
}

#[tokio::test]
async fn the_budget_is_used_up() {
    let spent = "ralph: the budget is used up";
    let Some(worked) = outcome([ScenarioStep::error(402, spent)], &[]).await else {
        return;
    };
    assert_eq!(
        (worked.end, worked.requests.len()),
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
    let Some(worked) = outcome(steps, &[]).await else {
        return;
    };
    assert_eq!(
        (worked.end, worked.requests.len()),
        (AgentEnd::OutOfBudget, 2)
    );
}

#[tokio::test]
async fn its_limit_is_reached_for_long() {
    let lifted = jiff::Timestamp::now().as_second() + 7200;
    let limit = ScenarioStep::error(429, "This request would exceed your account's rate limit")
        .with_header("retry-after", "7200")
        .with_header("anthropic-ratelimit-unified-status", "rejected")
        .with_header("anthropic-ratelimit-unified-reset", &lifted.to_string())
        .with_header(
            "anthropic-ratelimit-unified-representative-claim",
            "five_hour",
        );
    let Some(worked) = outcome([limit], &[]).await else {
        return;
    };
    let AgentEnd::Quota {
        wait: Some(wait), ..
    } = worked.end
    else {
        panic!("{:?}", worked.end);
    };
    assert!((7100..=7200).contains(&wait.as_secs()), "{wait:?}");
    assert_eq!(worked.requests.len(), 1);
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
    let Some(worked) = outcome(steps, &[]).await else {
        return;
    };
    assert_eq!(worked.end, AgentEnd::Finished);
    let waits = |event: &&AgentEvent| matches!(event, AgentEvent::Waiting { .. });
    assert!(worked.events.iter().filter(waits).count() >= 2);
}

#[tokio::test]
async fn every_answer_breaks() {
    let retries = [("CLAUDE_CODE_MAX_RETRIES", "1")];
    let Some(worked) = outcome([ScenarioStep::cut("I will")], &retries).await else {
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
    let kill = json!({"command": "kill -9 $PPID", "description": "ends it"});
    let Some(worked) = outcome([ScenarioStep::tool("Bash", kill)], &[]).await else {
        return;
    };
    assert_eq!(
        worked.end,
        AgentEnd::Crashed {
            why: "killed by signal 9, without any output".into()
        }
    );
}

#[tokio::test]
async fn it_times_out() {
    let slow = |_: &str| [ScenarioStep::text("Done.").with_stall(Duration::from_mins(1))];
    let Some(work) = AgentWorkFixture::prepare("claude", slow).await else {
        return;
    };
    let (worked, _) = work.with_timeout(Duration::from_secs(4)).run(&[]).await;
    assert_eq!((worked.end, worked.requests.len()), (AgentEnd::TimedOut, 1));
}
