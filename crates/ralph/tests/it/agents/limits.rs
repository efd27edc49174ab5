//! Budgets of an agent, and rejected credentials.

use std::time::Duration;

use ralph_core::ports::TokenUsage;
use ralph_test::ScenarioStep;
use serde_json::json;

use super::fixture::{AgentFixture, REPO};

/// A model with a known price.
const MODEL: &str = "claude-sonnet-4-5";

/// The usage of a reply of the maximum length.
fn maximum_usage() -> TokenUsage {
    TokenUsage {
        input_tokens: 10_000,
        output_tokens: 1_000_000,
        ..TokenUsage::default()
    }
}

fn list_files() -> ScenarioStep {
    let input = json!({"command": format!("ls {REPO}"), "description": "looks"});
    ScenarioStep::tool("Bash", input).with_usage(maximum_usage())
}

#[test]
fn a_cap_of_three_dollars_ends_the_run_and_is_never_exceeded() {
    let steps = [(); 40].map(|()| list_files());
    let Some(setup) = AgentFixture::new("claude", steps) else {
        return;
    };
    let setup = setup.set("max_cost_usd_estimate", "3.00");
    let ended = setup.run(&["--model", MODEL]).expect(10);
    let budget = "the budget `max_cost_usd_estimate` is used up";
    assert!(ended.combined().contains(budget), "{}", ended.combined());
    let calls = setup.upstream.model_requests().len();
    assert!((3..40).contains(&calls), "{calls}");
    let cost = setup.project.show()["cost_usd"].as_f64().unwrap();
    assert!((2.0..=3.0).contains(&cost), "{cost}");
    setup.project.audit();
}

#[test]
fn a_credential_that_is_refused_pauses_the_run_with_the_command_that_helps() {
    for (agent, command, more) in [
        ("claude", "`ralph store-token`", &[][..]),
        (
            "codex",
            "`ralph store-token --agent codex`",
            &["--model", "gpt-5.1-codex"],
        ),
    ] {
        let refused = || ScenarioStep::error(401, "invalid bearer token");
        let Some(setup) = AgentFixture::new(agent, [(); 12].map(|()| refused())) else {
            return;
        };
        let paused = setup.run(more).expect(11);
        assert!(paused.combined().contains(command), "{}", paused.combined());
        assert_eq!(setup.project.show()["iteration"], 1);
    }
}

#[test]
fn a_call_that_a_stop_cuts_off_is_charged() {
    let steps = [ScenarioStep::text("too late").with_delay(Duration::from_mins(1))];
    let Some(setup) = AgentFixture::new("claude", steps) else {
        return;
    };
    let live = setup.project.spawn(&["run", "--agent", "claude"]);
    live.wait_until("it has asked its model", |_| {
        !setup.upstream.model_requests().is_empty()
    });
    setup.project.ralph(&["stop", "last"]).expect(0);
    live.wait();
    let charged = setup.project.events("agent_charged");
    assert_eq!(charged.len(), 1, "{charged:?}");
    assert!(setup.project.show()["cost_usd"].as_f64().unwrap() > 0.0);
    setup.project.audit();
}
