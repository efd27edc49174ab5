//! A command that kills ralph itself is not retried without limit.

use rustix::process::Signal;
use serde_json::json;

use crate::project::{LiveRun, Project, actions, finish, run};

/// Kills the process when a command has started for the nth time.
fn kill_during(live: LiveRun<'_>, kind: &str, count: usize) {
    live.wait_for_event(kind, count);
    live.signal(Signal::KILL);
    live.wait();
}

#[track_caller]
fn expect_pause(project: &Project, command: &str) {
    let paused = project.ralph(&["resume", "last"]).expect(11);
    let reason = format!("ralph crashed 2 times in a row while `{command}` was running");
    assert!(paused.stdout.contains(&reason), "{}", paused.stdout);
    let shown = project.show()["reason"].as_str().unwrap().to_owned();
    assert!(shown.contains(&reason), "{shown}");
}

#[test]
fn a_command_that_kills_ralph_is_started_twice_and_not_again() {
    let project = Project::new().script(&[actions(&[run("sleep 50")]), finish()]);
    kill_during(project.start(), "action_started", 1);
    kill_during(project.resume(), "action_started", 2);
    expect_pause(&project, "sleep 50");
    assert_eq!(project.events("action_started").len(), 2);
    // Resuming is the user's request to retry it.
    kill_during(project.resume(), "action_started", 3);
}

#[test]
fn a_check_that_kills_ralph_is_started_twice_and_not_again() {
    let project = Project::new()
        .set(
            "test_command",
            "if [ -e a.txt ]; then sleep 50; fi; test -s base.txt",
        )
        .script(&[finish()]);
    let command = "if [ -e a.txt ]; then sleep 50; fi; test -s base.txt";
    let count = |project: &Project| {
        let started = project.event_values("check_started", "command");
        started.iter().filter(|it| **it == json!(command)).count()
    };
    for times in 1..=2 {
        let live = if times == 1 {
            project.start()
        } else {
            project.resume()
        };
        live.wait_until("the test command runs", |journal| {
            let started = |event: &&serde_json::Value| {
                event["type"] == "check_started" && event["command"] == command
            };
            journal.iter().filter(started).count() >= times
        });
        live.signal(Signal::KILL);
        live.wait();
    }
    expect_pause(&project, command);
    assert_eq!(count(&project), 2);
}
