//! Hosts that commands try to reach, and users that allow them.

use ralph_core::event::{CommandEvent, EgressEvent, Event};
use ralph_core::net::{ProviderTool, ProviderToolAction};
use ralph_core::ports::GateEvent;
use ralph_core::run::{Command, PauseReason, RunStatus};

use super::script::ScriptedAgent;
use super::test_run::{DO_TASK, EngineTestRun};

/// Runs until a file appears.
const WAIT_FOR_FILE: &str = "echo ready; while [ ! -e go ]; do sleep 0.1; done; rm go";

fn allow(host: &str) -> Command {
    Command::AllowHost { host: host.into() }
}

fn command_results(events: &[Event]) -> Vec<(bool, String)> {
    let done = events.iter().filter_map(|event| {
        let Event::Command(CommandEvent::CommandDone { done, detail, .. }) = event else {
            return None;
        };
        Some((*done, detail.clone()))
    });
    done.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_is_allowed_while_the_agent_works() {
    let world = EngineTestRun::new("");
    let script = format!("{WAIT_FOR_FILE}; {DO_TASK}");
    let working = world.start(ScriptedAgent::new(&[&script]));
    world.wait_for_text("ready").await;
    for (host, port) in [
        ("a.example", 443),
        ("a.example", 443),
        ("a.example", 5432),
        ("x.b.example", 80),
    ] {
        world.gate.push_blocked(host, port);
    }
    world
        .wait_for(|events| (blocked_count(events) == 3).then_some(()))
        .await;
    for host in ["A.example", "*.b.example", "a.example", "bad.example"] {
        assert_eq!(world.send_command(allow(host)).await, None, "{host}");
    }
    let answers = world
        .wait_for(|events| Some(command_results(events)).filter(|done| done.len() == 4))
        .await;
    let allowed = |host: &str| (true, format!("commands can reach `{host}` from now on"));
    assert_eq!(
        answers,
        [
            allowed("a.example"),
            allowed("*.b.example"),
            allowed("a.example"),
            (false, "the gate does not want it".into()),
        ]
    );
    assert_eq!(
        world
            .send_command(allow("https://a.example/"))
            .await
            .as_deref(),
        Some(
            "`https://a.example/` is a URL: write only its host, as `example.com` or `example.com:8443`"
        )
    );
    let state = world.state();
    assert_eq!(state.open.unwrap().agent_end, None, "it works on");
    assert_eq!(Vec::from_iter(state.blocked_hosts), ["a.example:5432"]);
    assert_eq!(
        Vec::from_iter(state.allowed_hosts),
        ["*.b.example", "a.example"]
    );
    std::fs::write(world.sandbox().join("go"), "").unwrap();
    assert_eq!(working.wait().await, RunStatus::Succeeded);
    let log = std::fs::read_to_string(world.dir.file("activity.log")).unwrap();
    assert!(
        log.contains("allow: commands can reach `a.example` from now on"),
        "{log}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_at_the_gate_and_tools_of_the_provider_are_in_the_journal() {
    let world = EngineTestRun::new("");
    let tool = || GateEvent::ProviderTool {
        provider: "api.example".into(),
        what: "the tool `web_search`".into(),
        tool: Some(ProviderTool::WebSearch),
        action: ProviderToolAction::Removed,
    };
    let further = GateEvent::FurtherBlocked {
        count: 7,
        examples: vec!["x.example".into()],
    };
    world
        .gate
        .news
        .lock()
        .unwrap()
        .extend([tool(), further, tool()]);
    let agent = ScriptedAgent::new(&[DO_TASK]);
    assert_eq!(world.run_to_end(agent).await, RunStatus::Succeeded);
    let state = world.state();
    assert_eq!(state.further_blocked, 7);
    assert_eq!(state.provider_tools.len(), 1, "it is recorded once");
}

fn blocked_count(events: &[Event]) -> usize {
    let blocked = |event: &&Event| matches!(event, Event::Egress(EgressEvent::HostBlocked { .. }));
    events.iter().filter(blocked).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_were_allowed_are_allowed_again_after_a_restart() {
    let world = EngineTestRun::new("");
    let working = world.start(ScriptedAgent::new(&[WAIT_FOR_FILE]));
    world.wait_for_text("ready").await;
    assert_eq!(world.send_command(allow("a.example")).await, None);
    let interrupted = RunStatus::Paused(PauseReason::Interrupted);
    assert_eq!(working.interrupt().await, interrupted);
    assert_eq!(*world.gate.hosts.lock().unwrap(), ["a.example"]);
    world.gate.hosts.lock().unwrap().clear();
    assert_eq!(
        world.run_to_end(ScriptedAgent::new(&[DO_TASK])).await,
        RunStatus::Succeeded
    );
    assert_eq!(*world.gate.hosts.lock().unwrap(), ["a.example"]);
}

#[test]
fn a_host_is_allowed_for_an_idle_run() {
    let walled = EngineTestRun::with_network_plan();
    let done = walled.apply_offline(allow("B.example:8443"));
    assert_eq!(
        (done.succeeded, done.detail.as_str()),
        (true, "commands can reach `b.example:8443` once it resumes")
    );
    let hosts = Vec::from_iter(walled.state().allowed_hosts);
    assert_eq!(hosts, ["b.example:8443"]);
    let closed = EngineTestRun::new("");
    let done = closed.apply_offline(allow("b.example"));
    assert_eq!(
        (done.succeeded, done.detail.as_str()),
        (false, "its sandbox has no gate that could allow a host")
    );
    assert!(closed.state().allowed_hosts.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_a_gate_cannot_allow_hosts() {
    let world = EngineTestRun::new("").without_gate();
    let working = world.start(ScriptedAgent::new(&[WAIT_FOR_FILE]));
    world.wait_for_text("ready").await;
    assert_eq!(
        world.send_command(allow("a.example")).await.as_deref(),
        Some("its sandbox has no gate that could allow a host")
    );
    assert_eq!(world.send_command(Command::Stop).await, None);
    assert_eq!(working.wait().await, RunStatus::Stopped);
    assert!(world.state().allowed_hosts.is_empty());
}
