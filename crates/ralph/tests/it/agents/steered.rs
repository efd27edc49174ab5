//! Messages to a running agent, and hosts allowed for its sandbox.

use ralph_test::ScenarioStep;
use serde_json::json;

use super::fixture::{AgentFixture, REPO};

fn bash(command: &str) -> ScenarioStep {
    let command = format!("cd {REPO}; {command}");
    ScenarioStep::tool("Bash", json!({"command": command, "description": "works"}))
}

const BOTH: &str = "echo one >a.txt; echo two >b.txt; git add a.txt b.txt; \
     git -c user.name=a -c user.email=a@localhost commit --quiet --message both; \
     sed -i 's/- \\[ \\] M/- [x] M/' ralph_task.md";

#[test]
fn a_message_and_an_allowed_host_reach_an_agent_that_works() {
    let look = "python3 -c 'import socket; socket.getaddrinfo(\"wanted.example\", 443)'";
    let patient =
        format!("{look}; read -t 4 < <(:;tail -f /dev/null); {look} && echo it is there now");
    let steps = [bash(&patient), bash(BOTH), ScenarioStep::text("Done.")];
    let Some(setup) = AgentFixture::new("claude", steps) else {
        return;
    };
    let setup = setup.set("mode", "guided");
    let live = setup.project.spawn(&["run", "--agent", "claude"]);
    live.wait_for_event("host_blocked", 1);
    setup
        .project
        .ralph(&["message", "last", "please use tabs"])
        .expect(0);
    setup
        .project
        .ralph(&["allow", "last", "wanted.example"])
        .expect(0);
    live.wait().expect(0);
    assert_eq!(
        setup.project.event_values("host_blocked", "host"),
        ["wanted.example"]
    );
    assert_eq!(
        setup.project.event_values("host_allowed", "host"),
        ["wanted.example"]
    );
    let states = setup.project.event_values("message_moved", "to");
    assert_eq!(states, ["queued", "delivered", "acknowledged"]);
    let second = setup.upstream.model_requests()[1].json().to_string();
    assert!(second.contains("it is there now"), "{second}");
    assert!(second.contains("please use tabs"), "{second}");
    setup.project.audit();
}
