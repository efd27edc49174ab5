//! The ends of agents, and their consequences.

use std::time::{Duration, Instant};

use ralph_core::budget::Budget;
use ralph_core::event::{Event, RunEvent, SandboxEvent};
use ralph_core::money::Usd;
use ralph_core::outage::OutagePolicy;
use ralph_core::ports::{Allowance, ProviderFailure};
use ralph_core::run::{Command, FailReason, PauseReason, RunStatus};

use super::script::ScriptedAgent;
use super::test_run::{DO_TASK, EngineTestRun};

/// Returns the event lines about agents and iterations.
fn agent_lines(world: &EngineTestRun) -> Vec<String> {
    let story = world.event_lines().into_iter();
    story
        .filter(|line| line.starts_with(|first: char| first.is_ascii_digit()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn some_ends_lead_to_another_attempt_and_some_to_the_next_iteration() {
    let stalls = ScriptedAgent::new(&["echo hello; sleep 60", DO_TASK]);
    let stalls = stalls.with_idle_timeout(Duration::from_millis(700));
    let patient = format!("echo wait 20000; sleep 2; {DO_TASK}");
    let patient = ScriptedAgent::new(&[&patient]).with_idle_timeout(Duration::from_millis(700));
    let lingers = format!("{DO_TASK}; echo end finished; sleep 60");
    let killed = ["kill -9 $$", "kill -9 $$", DO_TASK];
    let second = "2.1 starts, 2.1 finished, 2 completed";
    for (name, agent, story) in [
        (
            "it does nothing any more",
            stalls,
            format!("1.1 starts, 1.1 stalled, 1 agent_stopped, {second}"),
        ),
        (
            "its provider told it to wait",
            patient,
            "1.1 starts, 1.1 finished, 1 completed".into(),
        ),
        (
            "it is done but does not end",
            ScriptedAgent::new(&[&lingers]),
            "1.1 starts, 1.1 finished, 1 completed".into(),
        ),
        (
            "it is killed twice",
            ScriptedAgent::new(&killed),
            format!("1.1 starts, 1.1 crashed, 1.2 starts, 1.2 crashed, 1 agent_stopped, {second}"),
        ),
        (
            "it fails by itself",
            ScriptedAgent::new(&["exit 3", DO_TASK]),
            format!("1.1 starts, 1.1 crashed, 1 agent_stopped, {second}"),
        ),
        (
            "it gives up",
            ScriptedAgent::new(&["echo end gave-up", DO_TASK]),
            format!("1.1 starts, 1.1 gave_up, 1 agent_stopped, {second}"),
        ),
        (
            "its usage limit is reached",
            ScriptedAgent::new(&["echo end quota", DO_TASK]),
            "1.1 starts, 1.1 quota, 1.2 starts, 1.2 finished, 1 completed".into(),
        ),
    ] {
        let world = EngineTestRun::new("");
        let began = Instant::now();
        assert_eq!(
            world.run_to_end(agent).await,
            RunStatus::Succeeded,
            "{name}"
        );
        assert_eq!(agent_lines(&world).join(", "), story, "{name}");
        assert!(began.elapsed() < Duration::from_secs(30), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wait_for_a_usage_limit_has_a_countdown_and_can_be_ended() {
    for wish in [Command::Resume, Command::Pause] {
        let world = EngineTestRun::new("");
        let working = world.start(ScriptedAgent::new(&["echo end weekly-quota", DO_TASK]));
        let countdown = |event: &Event| {
            let Event::Run(RunEvent::QuotaCountdown { left_ms, .. }) = event else {
                return None;
            };
            Some(*left_ms)
        };
        let left = world
            .wait_for(|events| events.iter().find_map(countdown))
            .await;
        assert!((3_590_000..=3_600_000).contains(&left), "{left}");
        let status = world.state().status;
        assert_eq!(status.as_str(), "waiting_quota");
        assert!(status.reason().unwrap().starts_with("as the script says; "));
        assert_eq!(
            world.send_command(Command::Rotate).await.as_deref(),
            Some("it is waiting for a usage limit to reset")
        );
        assert_eq!(world.send_command(wish.clone()).await, None);
        if wish == Command::Pause {
            world
                .wait_for_status(&RunStatus::Paused(PauseReason::Person))
                .await;
            assert_eq!(world.send_command(Command::Resume).await, None);
        }
        assert_eq!(working.wait().await, RunStatus::Succeeded);
        assert_eq!(world.state().iteration, 1);
    }
}

/// Returns delays that are short enough for a test.
fn short_delays() -> OutagePolicy {
    OutagePolicy {
        first_delay: Duration::from_millis(1),
        longest_delay: Duration::from_millis(20),
        max_outage: Duration::from_mins(1),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_of_many_sessions_uses_one_iteration_and_no_wall_time() {
    let busy = "echo end overloaded";
    let scripts = [&[busy; 12][..], &[DO_TASK]].concat();
    let slow = OutagePolicy {
        first_delay: Duration::from_millis(20),
        longest_delay: Duration::from_millis(300),
        ..short_delays()
    };
    let world = EngineTestRun::new("").with_outage(slow);
    let began = Instant::now();
    let status = world.run_to_end(ScriptedAgent::new(&scripts)).await;
    assert_eq!(status, RunStatus::Succeeded);
    let state = world.state();
    assert_eq!(state.iteration, 1);
    let waits = world.event_lines();
    let waits = waits.iter().filter(|line| *line == "waiting_provider");
    assert_eq!(waits.count(), 12);
    // Twelve waits of at least half of 160, 300, 300… milliseconds.
    let waited = Duration::from_millis(80 + 11 * 150);
    let (active, all) = (state.active, began.elapsed());
    assert!(
        active + waited <= all + Duration::from_millis(100),
        "{active:?} {all:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_beyond_the_limit_pauses_with_the_setting() {
    let policy = OutagePolicy {
        max_outage: Duration::from_millis(30),
        ..short_delays()
    };
    let world = EngineTestRun::new("").with_outage(policy);
    let broken = PauseReason::Broken {
        what: "the provider of `script` is not available: as the script says".into(),
        fix: "`ralph resume` tries again; `model.max_outage` in `ralph.toml` sets how long a run waits".into(),
    };
    let busy = ScriptedAgent::new(&["echo end overloaded"]);
    assert_eq!(world.run_to_end(busy).await, RunStatus::Paused(broken));
    assert_eq!(world.state().iteration, 1);
    assert_eq!(
        world.run_to_end(ScriptedAgent::new(&[DO_TASK])).await,
        RunStatus::Succeeded
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_that_only_the_gate_sees_is_waited_out() {
    let world = EngineTestRun::new("").with_outage(short_delays());
    let why = "status 529".into();
    *world.gate.failure.lock().unwrap() = Some(ProviderFailure::Unavailable { why });
    let fails = ["exit 3"; 5];
    let scripts = [&fails[..], &[DO_TASK]].concat();
    assert_eq!(
        world.run_to_end(ScriptedAgent::new(&scripts)).await,
        RunStatus::Succeeded
    );
    assert_eq!(world.state().iteration, 1);
    assert_eq!(agent_lines(&world)[1], "1.1 overloaded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_is_not_trusted_pauses_at_once() {
    let world = EngineTestRun::new("");
    let host = "proxy.example".into();
    *world.gate.failure.lock().unwrap() = Some(ProviderFailure::Untrusted { host });
    let broken = PauseReason::Broken {
        what: "the certificate of `proxy.example` is not trusted".into(),
        fix: "if it is your own server or a proxy, set `SSL_CERT_FILE` to a file with the certificate of its authority, then `ralph resume`".into(),
    };
    let status = world
        .run_to_end(ScriptedAgent::new(&["echo end overloaded"]))
        .await;
    assert_eq!(status, RunStatus::Paused(broken));
    *world.gate.failure.lock().unwrap() = None;
    let status = world.run_to_end(ScriptedAgent::new(&[DO_TASK])).await;
    assert_eq!(status, RunStatus::Succeeded);
    assert_eq!(world.state().iteration, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_credential_pauses_with_the_command_that_helps() {
    let world = EngineTestRun::new("");
    let refused = ScriptedAgent::new(&["echo end unauthorized"]);
    let broken = PauseReason::Broken {
        what: "the credential of `script` was refused: as the script says".into(),
        fix: "store a valid one with `ralph store-token`, then `ralph resume`".into(),
    };
    assert_eq!(world.run_to_end(refused).await, RunStatus::Paused(broken));
    assert_eq!(world.state().iteration, 1);
    assert_eq!(
        world.run_to_end(ScriptedAgent::new(&[DO_TASK])).await,
        RunStatus::Succeeded
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_the_budget_refuses_ends_the_run() {
    for (limits, charged, budget) in [
        ("max_cost_usd_estimate: 1", 0.9, Budget::Cost),
        ("max_cost_usd_estimate: 1", 1.5, Budget::Cost),
        ("max_tokens_total: 11", 0.1, Budget::Tokens),
        (
            "max_cost_usd_estimate: 1\nmax_tokens_total: 1000",
            0.5,
            Budget::Cost,
        ),
    ] {
        let world = EngineTestRun::new(limits);
        let script = "echo working; sleep 1; echo end budget";
        let working = world.start(ScriptedAgent::new(&[script, DO_TASK]));
        world.wait_for_text("working").await;
        world.gate.push_charge(charged);
        let failed = RunStatus::Failed(FailReason::Budget { budget });
        assert_eq!(working.wait().await, failed, "{limits}");
        assert_eq!(
            agent_lines(&world),
            ["1.1 starts", "1.1 out_of_budget", "1 out_of_budget"]
        );
        let allowed = world.gate.allowances.lock().unwrap().clone();
        let limits = world.state().limits;
        let all = Allowance {
            cost: limits.max_cost,
            tokens: limits.max_tokens,
        };
        // After its end, nothing may be spent.
        assert_eq!(allowed, [all, Allowance::zero()]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_fails_after_an_unaffordable_call_ends_the_run() {
    let world = EngineTestRun::new("max_cost_usd_estimate: 1");
    *world.gate.unaffordable.lock().unwrap() = Some(Budget::Cost);
    world.gate.push_charge(0.9);
    let budget = Budget::Cost;
    let failed = RunStatus::Failed(FailReason::Budget { budget });
    let status = world
        .run_to_end(ScriptedAgent::new(&["exit 3", DO_TASK]))
        .await;
    assert_eq!(status, failed);
    assert_eq!(
        agent_lines(&world),
        ["1.1 starts", "1.1 out_of_budget", "1 out_of_budget"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_count_never_arrives_is_charged_by_its_reservation() {
    let world = EngineTestRun::new("max_cost_usd_estimate: 1");
    *world.gate.reserved.lock().unwrap() = Some(0.25);
    let status = world.run_to_end(ScriptedAgent::new(&[DO_TASK])).await;
    assert_eq!(status, RunStatus::Succeeded);
    assert_eq!(world.state().spent().cost, Usd::from_dollars(0.25).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_does_nothing_pauses_the_run() {
    let world = EngineTestRun::new("");
    let idle = PauseReason::Broken {
        what: "`script` changed nothing in 3 iterations".into(),
        fix: "read `ralph logs`, make the task clearer, then `ralph resume`".into(),
    };
    assert_eq!(
        world.run_to_end(ScriptedAgent::new(&["true"])).await,
        RunStatus::Paused(idle)
    );
    assert_eq!(world.state().iteration, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tick_counts_though_the_agent_changed_more_of_the_task_file() {
    let world = EngineTestRun::new("");
    let noting = format!("{DO_TASK} && echo '- a note' >> ralph_task.md");
    let agent = ScriptedAgent::new(&[&noting]);
    assert_eq!(world.run_to_end(agent).await, RunStatus::Succeeded);
    assert_eq!(world.state().iteration, 1);
    let is_tampering = |event: &Event| matches!(event, Event::Sandbox(SandboxEvent::Tamper { path, .. }) if path == "ralph_task.md");
    assert!(world.events().iter().any(is_tampering));
}
