//! The end of a server and the start of the next one.

use ralph_server::ServeOptions;
use serde_json::json;

use super::{queue, slow_project, start_another, statuses, wait_for_event};
use crate::support::TestServer;

#[tokio::test]
async fn the_next_server_continues_parked_and_queued_runs_but_not_paused_ones() {
    let server = TestServer::start_with(slow_project(), ServeOptions::local(0, 2)).await;
    let paused = server.start_run().await;
    wait_for_event(&server, &paused, "action_started").await;
    let path = format!("/api/v1/runs/{paused}/pause");
    server.post(&path, &json!({})).await.expect(200);
    server.wait_for_status(&paused, "paused").await;
    let mut runs = Vec::new();
    for _ in 0..5 {
        runs.push(start_another(&server).await);
    }
    wait_for_event(&server, &runs[0], "action_started").await;
    let queued = queue(&server, "queued").await;
    assert_eq!(queued, runs[2..]);
    let project = server.stop().await;
    for run in &runs {
        assert_eq!(statuses(&project, run).last().unwrap(), "paused", "{run}");
    }

    let server = TestServer::start_with(project, ServeOptions::local(0, 1)).await;
    server
        .wait_for_run(&runs[0], "it has a worker", |_| true)
        .await;
    for run in &runs {
        server.wait_for_status(run, "succeeded").await;
    }
    // One worker: the order of their ends is the order of the queue.
    let ends: Vec<String> = {
        let mut ends: Vec<(String, String)> = Vec::new();
        for run in &runs {
            let details = server.get(&format!("/api/v1/runs/{run}")).await.json();
            ends.push((
                details["updated_at"].as_str().unwrap().to_owned(),
                run.clone(),
            ));
        }
        ends.sort();
        ends.into_iter().map(|(_, run)| run).collect()
    };
    assert_eq!(ends[2..], runs[2..]);
    let details = server.get(&format!("/api/v1/runs/{paused}")).await.json();
    assert_eq!(details["status"], "paused");
    server.stop().await;
}
