//! One run that panics, floods its output or fills its disk does not affect the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ralph_core::ports::Clock;
use ralph_server::ServeOptions;
use serde_json::{Value, json};

use super::{slow_project, start_another, wait_for_event};
use crate::support::{TestProject, TestServer, command_reply, finishing_reply};

/// The machine's clock, which panics once in the thread of a task file.
#[derive(Debug)]
struct BrokenClock {
    start: Instant,
    is_broken: AtomicBool,
}

const BROKEN_TASK: &str = "broken.md";

impl Clock for BrokenClock {
    fn now(&self) -> jiff::Timestamp {
        let is_broken_thread = thread::current()
            .name()
            .is_some_and(|name| name.ends_with(BROKEN_TASK));
        let is_broken = is_broken_thread && self.is_broken.swap(false, Ordering::SeqCst);
        assert!(!is_broken, "the clock is broken");
        jiff::Timestamp::now()
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}

/// Starts a run of another task with a script of its own, and returns its id.
async fn start_task(server: &TestServer, file: &str, script: &[Value]) -> String {
    let project = &server.project;
    let task = std::fs::read_to_string(project.repo().join("ralph_task.md")).unwrap();
    let task = task.replace("task_id: task", "task_id: other");
    std::fs::write(project.repo().join(file), task).unwrap();
    let lines: Vec<String> = script.iter().map(Value::to_string).collect();
    let replies = project.path("other.jsonl");
    std::fs::write(&replies, lines.join("\n")).unwrap();
    let mut body = project.new_run();
    body["file"] = json!(file);
    body["model"] = json!(format!("scripted:{}", replies.display()));
    let reply = server.post("/api/v1/runs", &body).await.expect(201);
    reply.json()["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_panic_pauses_its_run_with_the_reason_and_leaves_the_others_alone() {
    let clock = Arc::new(BrokenClock {
        start: Instant::now(),
        is_broken: AtomicBool::new(false),
    });
    let project = slow_project();
    let app = project.app().with_clock(clock.clone());
    let server = TestServer::start_app(project, app, ServeOptions::local(0, 5)).await;
    let script = [command_reply("sleep 1"), finishing_reply()];
    let broken = start_task(&server, BROKEN_TASK, &script).await;
    let mut others = vec![server.start_run().await];
    for _ in 0..3 {
        others.push(start_another(&server).await);
    }
    wait_for_event(&server, &broken, "action_started").await;
    clock.is_broken.store(true, Ordering::SeqCst);
    let paused = server.wait_for_status(&broken, "paused").await;
    let reason = paused["reason"].as_str().unwrap();
    assert!(
        reason.contains("it panicked: the clock is broken"),
        "{paused}"
    );
    assert!(!clock.is_broken.load(Ordering::SeqCst));
    for run in &others {
        server.wait_for_status(run, "succeeded").await;
    }
    // The run itself is intact.
    let path = format!("/api/v1/runs/{broken}/resume");
    server.post(&path, &Value::Null).await.expect(200);
    server.wait_for_status(&broken, "succeeded").await;
    server.stop().await;
}

#[tokio::test]
async fn a_run_that_floods_its_output_does_not_hold_up_the_others() {
    let server = TestServer::start_for(TestProject::new()).await;
    let flood = json!({"type": "run", "command": "yes 0123456789abcdef", "timeout_s": 3600});
    let script = [crate::support::reply(&[flood]), finishing_reply()];
    let flooding = start_task(&server, "flood.md", &script).await;
    wait_for_event(&server, &flooding, "action_started").await;
    // Each of these needs several iterations and requests.
    for _ in 0..3 {
        let run = start_another(&server).await;
        server.wait_for_status(&run, "succeeded").await;
    }
    // The flood of an hour was in progress all the time.
    let events = server.project.events(&flooding);
    let is_over = events
        .iter()
        .any(|event| event["type"] == "action_finished");
    assert!(!is_over, "{events:?}");
    let path = format!("/api/v1/runs/{flooding}/stop");
    server.post(&path, &Value::Null).await.expect(200);
    server.wait_for_status(&flooding, "stopped").await;
    server.stop().await;
}
