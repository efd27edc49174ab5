//! Failures during an agent session.

use ralph_test::ScenarioStep;
use rustix::process::Signal;
use serde_json::json;

use super::fixture::{AgentFixture, REPO};

fn waits_once() -> ScenarioStep {
    let command = format!(
        "cd {REPO}; test -e /workspace/waited || {{ touch /workspace/waited; read -t 20 < <(:;tail -f /dev/null); }}"
    );
    ScenarioStep::tool("Bash", json!({"command": command, "description": "waits"}))
}

fn does_both() -> ScenarioStep {
    let command = format!(
        "cd {REPO}; echo one >a.txt; echo two >b.txt; git add a.txt b.txt; \
         git -c user.name=a -c user.email=a@localhost commit --quiet --message both; \
         sed -i 's/- \\[ \\] M/- [x] M/' ralph_task.md"
    );
    ScenarioStep::tool("Bash", json!({"command": command, "description": "works"}))
}

/// Asserts that the run succeeds in one iteration despite the failure.
fn assert_delivered(setup: &AgentFixture) {
    let shown = setup.project.show();
    assert_eq!(shown["status"], "succeeded");
    assert_eq!(shown["iteration"], 1);
    setup.project.audit();
}

#[test]
fn a_run_resumes_after_ralph_is_killed_during_an_agent_session() {
    let steps = [waits_once(), does_both(), ScenarioStep::text("Done.")];
    let Some(setup) = AgentFixture::new("claude", steps) else {
        return;
    };
    let live = setup.project.spawn(&["run", "--agent", "claude"]);
    live.wait_until("the agent waits", |journal| {
        journal.iter().any(|event| event["kind"] == "tool")
    });
    live.signal(Signal::KILL);
    live.wait();
    setup.project.ralph(&["resume", "last"]).expect(0);
    assert_delivered(&setup);
}

#[test]
fn a_killed_container_restarts_the_agent_once() {
    let steps = [waits_once(), does_both(), ScenarioStep::text("Done.")];
    let Some(setup) = AgentFixture::new("claude", steps) else {
        return;
    };
    let live = setup.project.spawn(&["run", "--agent", "claude"]);
    live.wait_until("the agent waits", |journal| {
        journal.iter().any(|event| event["kind"] == "tool")
    });
    for container in setup.containers() {
        let killed = std::process::Command::new("docker")
            .args(["kill", &container])
            .output()
            .unwrap();
        assert!(killed.status.success(), "{killed:?}");
    }
    live.wait().expect(0);
    assert_eq!(setup.project.events("agent_started").len(), 2);
    assert_delivered(&setup);
}

#[test]
fn an_agent_retries_an_interrupted_reply() {
    let steps = [
        ScenarioStep::cut("I will"),
        does_both(),
        ScenarioStep::text("Done."),
    ];
    let Some(setup) = AgentFixture::new("claude", steps) else {
        return;
    };
    setup.run(&[]).expect(0);
    assert_delivered(&setup);
}
