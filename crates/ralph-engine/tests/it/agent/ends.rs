//! How agents end, and what follows.

use std::time::{Duration, Instant};

use ralph_core::budget::Budget;
use ralph_core::event::Event;
use ralph_core::money::Usd;
use ralph_core::outage::OutagePolicy;
use ralph_core::ports::{Allowance, ProviderFailure};
use ralph_core::run::{Command, FailReason, PauseReason, RunStatus};

use super::script::ScriptedAgent;
use super::world::{DOING, World};

/// Returns the lines of a story that are about agents and iterations.
fn agents(world: &World) -> Vec<String> {
    let story = world.story().into_iter();
    story
        .filter(|line| line.starts_with(|first: char| first.is_ascii_digit()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn some_ends_are_followed_by_another_try_and_some_by_the_next_iteration() {
    let stalls = ScriptedAgent::new(&["echo hello; sleep 60", DOING]);
    let stalls = stalls.idle(Duration::from_millis(700));
    let patient = format!("echo wait 20000; sleep 2; {DOING}");
    let patient = ScriptedAgent::new(&[&patient]).idle(Duration::from_millis(700));
    let lingers = format!("{DOING}; echo end finished; sleep 60");
    let killed = ["kill -9 $$", "kill -9 $$", DOING];
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
            ScriptedAgent::new(&["exit 3", DOING]),
            format!("1.1 starts, 1.1 crashed, 1 agent_stopped, {second}"),
        ),
        (
            "it gives up",
            ScriptedAgent::new(&["echo end gave-up", DOING]),
            format!("1.1 starts, 1.1 gave_up, 1 agent_stopped, {second}"),
        ),
        (
            "its usage limit is reached",
            ScriptedAgent::new(&["echo end quota", DOING]),
            "1.1 starts, 1.1 quota, 1.2 starts, 1.2 finished, 1 completed".into(),
        ),
    ] {
        let world = World::new("");
        let began = Instant::now();
        assert_eq!(world.work(agent).await, RunStatus::Succeeded, "{name}");
        assert_eq!(agents(&world).join(", "), story, "{name}");
        assert!(began.elapsed() < Duration::from_secs(30), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_usage_limit_is_waited_for_with_a_countdown_that_people_can_cut_short() {
    for wish in [Command::Resume, Command::Pause] {
        let world = World::new("");
        let working = world.start(ScriptedAgent::new(&["echo end weekly-quota", DOING]));
        let countdown = |event: &Event| {
            let Event::QuotaCountdown { left_ms, .. } = event else {
                return None;
            };
            Some(*left_ms)
        };
        let left = world
            .until(|events| events.iter().find_map(countdown))
            .await;
        assert!((3_590_000..=3_600_000).contains(&left), "{left}");
        let status = world.state().status;
        assert_eq!(status.word(), "waiting_quota");
        assert!(status.reason().unwrap().starts_with("as the script says; "));
        assert_eq!(
            world.tell(Command::Rotate).await.as_deref(),
            Some("it waits for the end of a usage limit")
        );
        assert_eq!(world.tell(wish.clone()).await, None);
        if wish == Command::Pause {
            world
                .until_status(&RunStatus::Paused(PauseReason::Person))
                .await;
            assert_eq!(world.tell(Command::Resume).await, None);
        }
        assert_eq!(working.end().await, RunStatus::Succeeded);
        assert_eq!(world.state().iteration, 1);
    }
}

/// Delays that a test can wait for.
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
    let scripts = [&[busy; 12][..], &[DOING]].concat();
    let slow = OutagePolicy {
        first_delay: Duration::from_millis(20),
        longest_delay: Duration::from_millis(300),
        ..short_delays()
    };
    let world = World::new("").with_outage(slow);
    let began = Instant::now();
    let status = world.work(ScriptedAgent::new(&scripts)).await;
    assert_eq!(status, RunStatus::Succeeded);
    let state = world.state();
    assert_eq!(state.iteration, 1);
    let waits = world.story();
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
    let world = World::new("").with_outage(policy);
    let broken = PauseReason::Broken {
        what: "the provider of `script` is not available: as the script says".into(),
        fix: "`ralph resume` tries again; `model.max_outage` in `ralph.toml` sets how long a run waits".into(),
    };
    let busy = ScriptedAgent::new(&["echo end overloaded"]);
    assert_eq!(world.work(busy).await, RunStatus::Paused(broken));
    assert_eq!(world.state().iteration, 1);
    assert_eq!(
        world.work(ScriptedAgent::new(&[DOING])).await,
        RunStatus::Succeeded
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_that_only_the_gate_sees_is_waited_out() {
    let world = World::new("").with_outage(short_delays());
    let why = "status 529".into();
    *world.gate.failure.lock().unwrap() = Some(ProviderFailure::Unavailable { why });
    let fails = ["exit 3"; 5];
    let scripts = [&fails[..], &[DOING]].concat();
    assert_eq!(
        world.work(ScriptedAgent::new(&scripts)).await,
        RunStatus::Succeeded
    );
    assert_eq!(world.state().iteration, 1);
    assert_eq!(agents(&world)[1], "1.1 overloaded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_is_not_trusted_pauses_at_once() {
    let world = World::new("");
    let host = "proxy.example".into();
    *world.gate.failure.lock().unwrap() = Some(ProviderFailure::Untrusted { host });
    let broken = PauseReason::Broken {
        what: "the certificate of `proxy.example` is not trusted".into(),
        fix: "if it is your own server or a proxy, set `SSL_CERT_FILE` to a file with the certificate of its authority, then `ralph resume`".into(),
    };
    let status = world
        .work(ScriptedAgent::new(&["echo end overloaded"]))
        .await;
    assert_eq!(status, RunStatus::Paused(broken));
    *world.gate.failure.lock().unwrap() = None;
    let status = world.work(ScriptedAgent::new(&[DOING])).await;
    assert_eq!(status, RunStatus::Succeeded);
    assert_eq!(world.state().iteration, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_credential_pauses_with_the_command_that_helps() {
    let world = World::new("");
    let refused = ScriptedAgent::new(&["echo end unauthorized"]);
    let broken = PauseReason::Broken {
        what: "the credential of `script` was refused: as the script says".into(),
        fix: "store a valid one with `ralph store-token`, then `ralph resume`".into(),
    };
    assert_eq!(world.work(refused).await, RunStatus::Paused(broken));
    assert_eq!(world.state().iteration, 1);
    assert_eq!(
        world.work(ScriptedAgent::new(&[DOING])).await,
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
        let world = World::new(limits);
        let script = "echo working; sleep 1; echo end budget";
        let working = world.start(ScriptedAgent::new(&[script, DOING]));
        world.until_said("working").await;
        world.gate.charges(charged);
        let failed = RunStatus::Failed(FailReason::Budget { budget });
        assert_eq!(working.end().await, failed, "{limits}");
        assert_eq!(
            agents(&world),
            ["1.1 starts", "1.1 out_of_budget", "1 out_of_budget"]
        );
        let allowed = world.gate.allowances.lock().unwrap().clone();
        let limits = world.state().limits;
        let all = Allowance {
            cost: limits.max_cost,
            tokens: limits.max_tokens,
        };
        // When it has ended, nothing may be spent any more.
        assert_eq!(allowed, [all, Allowance::none()]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_fails_after_an_unaffordable_call_ends_the_run() {
    let world = World::new("max_cost_usd_estimate: 1");
    *world.gate.short.lock().unwrap() = Some(Budget::Cost);
    world.gate.charges(0.9);
    let budget = Budget::Cost;
    let failed = RunStatus::Failed(FailReason::Budget { budget });
    let status = world.work(ScriptedAgent::new(&["exit 3", DOING])).await;
    assert_eq!(status, failed);
    assert_eq!(
        agents(&world),
        ["1.1 starts", "1.1 out_of_budget", "1 out_of_budget"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_count_never_arrives_is_charged_by_its_reservation() {
    let world = World::new("max_cost_usd_estimate: 1");
    *world.gate.reserved.lock().unwrap() = Some(0.25);
    let status = world.work(ScriptedAgent::new(&[DOING])).await;
    assert_eq!(status, RunStatus::Succeeded);
    assert_eq!(world.state().spent().cost, Usd::from_dollars(0.25).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_does_nothing_is_looked_after_by_a_person() {
    let world = World::new("");
    let idle = PauseReason::Broken {
        what: "`script` changed nothing in 3 iterations".into(),
        fix: "look at `ralph logs`, make the task clearer, then `ralph resume`".into(),
    };
    assert_eq!(
        world.work(ScriptedAgent::new(&["true"])).await,
        RunStatus::Paused(idle)
    );
    assert_eq!(world.state().iteration, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tick_counts_though_the_agent_changed_more_of_the_task_file() {
    let world = World::new("");
    let noting = format!("{DOING} && echo '- a note' >> ralph_task.md");
    let agent = ScriptedAgent::new(&[&noting]);
    assert_eq!(world.work(agent).await, RunStatus::Succeeded);
    assert_eq!(world.state().iteration, 1);
    let is_tampering =
        |event: &Event| matches!(event, Event::Tamper { path, .. } if path == "ralph_task.md");
    assert!(world.events().iter().any(is_tampering));
}
