//! Messages of the user to an agent.

use ralph_core::event::MessageState;
use ralph_core::run::{Command, PauseReason, RunStatus};

use super::script::ScriptedAgent;
use super::test_run::{DO_TASK, EngineTestRun};

const GUIDED: &str = "mode: guided";

fn message(text: &str) -> Command {
    Command::Message { text: text.into() }
}

/// Returns the event lines about agents and messages.
fn agent_and_message_lines(world: &EngineTestRun) -> Vec<String> {
    let story = world.event_lines().into_iter();
    story
        .filter(|line| line.starts_with('`') || line.contains('.') && !line.starts_with("charged"))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_accepts_messages_acknowledges_one_while_working() {
    let world = EngineTestRun::new(GUIDED);
    let listens = format!(
        "read prompt; echo ready; read first; echo \"ack $first\"; read second; echo \"ack $second\"; \
         {DO_TASK}; echo end finished; cat > /dev/null"
    );
    let working = world.start(ScriptedAgent::new(&[&listens]).with_messages());
    world.wait_for_text("ready").await;
    assert_eq!(world.send_command(message("use one")).await, None);
    assert_eq!(world.send_command(message("and be quick")).await, None);
    assert_eq!(working.wait().await, RunStatus::Succeeded);
    let mut lines = agent_and_message_lines(&world);
    // The second may be queued before or after the first is acknowledged.
    lines.sort_by_key(|line| line.contains("be quick"));
    assert_eq!(
        lines,
        [
            "1.1 starts",
            "`use one` queued",
            "`use one` delivered",
            "`use one` acknowledged",
            "1.1 finished",
            "`and be quick` queued",
            "`and be quick` delivered",
            "`and be quick` acknowledged",
        ]
    );
    assert!(!world.prompt(1).contains("Messages from the user"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_to_an_agent_without_input_is_in_its_next_prompt() {
    let world = EngineTestRun::new(GUIDED);
    // It reads its whole input, which ends after the prompt.
    let deaf = "prompt=$(cat); echo ready; while [ ! -e heard ]; do sleep 0.1; done; rm heard";
    let next = "case $(cat) in *'use one'*) echo seen;; esac";
    let working = world.start(ScriptedAgent::new(&[deaf, next, DO_TASK]));
    world.wait_for_text("ready").await;
    assert_eq!(world.send_command(message("use one")).await, None);
    std::fs::write(world.sandbox().join("heard"), "").unwrap();
    assert_eq!(working.wait().await, RunStatus::Succeeded);
    assert_eq!(
        agent_and_message_lines(&world),
        [
            "1.1 starts",
            "`use one` queued",
            "1.1 finished",
            "`use one` delivered",
            "2.1 starts",
            "2.1 finished",
            "`use one` acknowledged",
            "3.1 starts",
            "3.1 finished",
        ]
    );
    assert_eq!(world.agent_texts(), ["ready", "seen"]);
    let part = "\n## Messages from the user\n- use one\n";
    let shown: Vec<bool> = (1..=3)
        .map(|number| world.prompt(number).contains(part))
        .collect();
    assert_eq!(shown, [false, true, false]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_not_lost_with_the_agent_that_got_it() {
    let world = EngineTestRun::new(GUIDED);
    let dies = "read prompt; echo ready; read message; kill -9 $$";
    // It reads the message, but does not acknowledge it before it is done.
    let again = "read prompt; echo end gave-up";
    let working = world.start(ScriptedAgent::new(&[dies, dies, again, DO_TASK]).with_messages());
    world.wait_for_text("ready").await;
    assert_eq!(world.send_command(message("use one")).await, None);
    world
        .wait_for(|_| (world.agent_texts().len() == 2).then_some(()))
        .await;
    assert_eq!(world.send_command(message("two")).await, None);
    assert_eq!(working.wait().await, RunStatus::Succeeded);
    assert_eq!(
        agent_and_message_lines(&world),
        [
            "1.1 starts",
            "`use one` queued",
            "`use one` delivered",
            "1.1 crashed",
            "1.2 starts",
            "`two` queued",
            "`two` delivered",
            "1.2 crashed",
            "2.1 starts",
            "2.1 gave_up",
            "`use one` acknowledged",
            "`two` acknowledged",
            "3.1 starts",
            "3.1 finished",
        ]
    );
    assert!(
        world
            .prompt(2)
            .contains("## Messages from the user\n- use one\n- two\n")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_waits_for_an_idle_run() {
    let world = EngineTestRun::new(GUIDED);
    let working = world.start(ScriptedAgent::new(&["echo ready; sleep 60"]));
    world.wait_for_text("ready").await;
    let interrupted = RunStatus::Paused(PauseReason::Interrupted);
    assert_eq!(working.interrupt().await, interrupted);
    let done = world.apply_offline(message("use one"));
    assert_eq!(
        (done.succeeded, done.detail.as_str()),
        (true, "the message is queued")
    );
    assert_eq!(world.state().messages[0].state, MessageState::Queued);
    assert_eq!(
        world.run_to_end(ScriptedAgent::new(&[DO_TASK])).await,
        RunStatus::Succeeded
    );
    assert!(
        world
            .prompt(1)
            .contains("## Messages from the user\n- use one\n")
    );
    let state = world.state();
    assert_eq!(state.messages[0].state, MessageState::Acknowledged);
    assert_eq!(state.waiting_messages().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_autonomous_run_refuses_messages() {
    let world = EngineTestRun::new("");
    let working = world.start(ScriptedAgent::new(&["echo ready; sleep 60"]).with_messages());
    world.wait_for_text("ready").await;
    assert_eq!(
        world.send_command(message("use one")).await.as_deref(),
        Some("its mode is `autonomous`; messages need the mode `guided`, see `ralph mode`")
    );
    assert_eq!(world.send_command(Command::Stop).await, None);
    assert_eq!(working.wait().await, RunStatus::Stopped);
}
