//! User commands while an agent works.

use std::fs;
use std::time::{Duration, Instant};

use ralph_core::event::{Event, RunEvent};
use ralph_core::outage::OutagePolicy;
use ralph_core::run::{Command, PauseReason, RunStatus};

use super::script::ScriptedAgent;
use super::test_run::{DO_TASK, EngineTestRun};

/// How soon a command takes effect: much sooner than the agent would end.
const SOON: Duration = Duration::from_secs(30);

/// Writes a file, reports that, and continues for minutes in a child that outlives it.
const ENDLESS: &str = "echo kept > left.txt; echo working; setsid sleep 297.5 & wait";

/// Returns the number of processes that still run in the test's sandboxes.
fn running_processes(world: &EngineTestRun) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let works_there = |process: &fs::DirEntry| {
        let directory = fs::read_link(process.path().join("cwd"));
        directory.is_ok_and(|directory| directory.starts_with(world.directory()))
    };
    processes.filter(works_there).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_a_rotation_and_a_stop_end_the_agent_at_once() {
    let begins = "preparing, running, 1.1 starts, charged $0.50";
    let again = "2.1 starts, 2.1 finished, verifying, 2 completed, succeeded";
    for (wish, story, status) in [
        (
            Command::Pause,
            format!("{begins}, 1.1 halted, paused, running, 1 rotated, {again}"),
            RunStatus::Succeeded,
        ),
        (
            Command::Rotate,
            format!("{begins}, 1.1 halted, 1 rotated, {again}"),
            RunStatus::Succeeded,
        ),
        (
            Command::Stop,
            format!("{begins}, stopped"),
            RunStatus::Stopped,
        ),
    ] {
        let world = EngineTestRun::new("");
        let keeps = format!("grep -q kept left.txt && rm left.txt && {DO_TASK}");
        let working = world.start(ScriptedAgent::new(&[ENDLESS, &keeps]));
        world.wait_for_text("working").await;
        world.gate.push_charge(0.5);
        let sent_at = Instant::now();
        assert_eq!(world.send_command(wish.clone()).await, None);
        if wish == Command::Pause {
            let paused = RunStatus::Paused(PauseReason::Person);
            world.wait_for_status(&paused).await;
            assert_eq!(running_processes(&world), 0);
            assert!(sent_at.elapsed() < SOON, "{:?}", sent_at.elapsed());
            assert_eq!(world.send_command(Command::Resume).await, None);
        }
        assert_eq!(working.wait().await, status, "{wish:?}");
        assert_eq!(running_processes(&world), 0, "{wish:?}");
        assert_eq!(world.event_lines().join(", "), story, "{wish:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_that_outlives_its_process_is_followed_by_a_fresh_iteration() {
    let world = EngineTestRun::new("");
    let working = world.start(ScriptedAgent::new(&[ENDLESS]));
    world.wait_for_text("working").await;
    assert_eq!(world.send_command(Command::Pause).await, None);
    world
        .wait_for_status(&RunStatus::Paused(PauseReason::Person))
        .await;
    assert_eq!(
        working.interrupt().await,
        RunStatus::Paused(PauseReason::Interrupted)
    );
    let keeps = format!("grep -q kept left.txt && rm left.txt && {DO_TASK}");
    assert_eq!(
        world.run_to_end(ScriptedAgent::new(&[&keeps])).await,
        RunStatus::Succeeded
    );
    let story = world.event_lines();
    let agents: Vec<&String> = story
        .iter()
        .filter(|line| line.starts_with(['1', '2']))
        .collect();
    assert_eq!(
        agents,
        [
            "1.1 starts",
            "1.1 halted",
            "1 rotated",
            "2.1 starts",
            "2.1 finished",
            "2 completed"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_agent_is_started_again_in_its_iteration() {
    let world = EngineTestRun::new("");
    let working = world.start(ScriptedAgent::new(&[ENDLESS]));
    world.wait_for_text("working").await;
    world.gate.push_charge(0.25);
    assert_eq!(
        working.interrupt().await,
        RunStatus::Paused(PauseReason::Interrupted)
    );
    assert_eq!(running_processes(&world), 0);
    assert_eq!(world.state().cost.to_string(), "$0.25");
    let keeps = format!("grep -q kept left.txt && rm left.txt && {DO_TASK}");
    assert_eq!(
        world.run_to_end(ScriptedAgent::new(&[&keeps])).await,
        RunStatus::Succeeded
    );
    assert!(world.event_lines().contains(&"1.2 finished".to_owned()));
    assert_eq!(world.state().iteration, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_a_provider_can_be_cut_short() {
    let busy = "echo end overloaded";
    // Longer than the test: it ends only because the wait is cut short.
    let hour = Duration::from_hours(1);
    let patient = OutagePolicy {
        first_delay: hour,
        longest_delay: hour,
        max_outage: hour,
    };
    for wish in [Command::Resume, Command::Pause] {
        let world = EngineTestRun::new("").with_outage(patient);
        let working = world.start(ScriptedAgent::new(&[busy, DO_TASK]));
        let countdown = |event: &Event| {
            let Event::Run(RunEvent::ProviderCountdown { left_ms, .. }) = event else {
                return None;
            };
            Some(*left_ms)
        };
        let left = world
            .wait_for(|events| events.iter().find_map(countdown))
            .await;
        assert!((1_790_000..=3_600_000).contains(&left), "{left}");
        let status = world.state().status;
        assert_eq!(status.as_str(), "waiting_provider");
        let reason = status.reason().unwrap();
        let expected =
            "the provider of `script` is not available: as the script says; next attempt at ";
        assert!(reason.starts_with(expected), "{reason}");
        assert_eq!(
            world.send_command(Command::Rotate).await.as_deref(),
            Some("it is waiting for the model's provider")
        );
        assert_eq!(world.send_command(wish.clone()).await, None);
        if wish == Command::Pause {
            world
                .wait_for_status(&RunStatus::Paused(PauseReason::Person))
                .await;
            assert_eq!(world.send_command(Command::Resume).await, None);
        }
        assert_eq!(working.wait().await, RunStatus::Succeeded);
        let story = world.event_lines();
        assert!(
            story.contains(&"1.2 finished".to_owned()),
            "{wish:?}: {story:?}"
        );
        assert_eq!(world.state().iteration, 1);
    }
}
