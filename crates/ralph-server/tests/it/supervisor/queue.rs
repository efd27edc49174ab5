//! The queue: runs wait for a worker in order, and a waiting run has none.

use ralph_server::ServeOptions;
use serde_json::json;

use super::{queue, slow_project, start_another, statuses, wait_for_event};
use crate::support::TestServer;

async fn server_with_one_worker() -> TestServer {
    TestServer::start_with(slow_project(), ServeOptions::local(0, 1)).await
}

#[tokio::test]
async fn a_run_waits_for_a_worker_and_a_paused_run_has_none() {
    let server = server_with_one_worker().await;
    let first = server.start_run().await;
    wait_for_event(&server, &first, "action_started").await;
    let (second, third) = (start_another(&server).await, start_another(&server).await);
    assert_eq!(
        queue(&server, "working").await,
        std::slice::from_ref(&first)
    );
    let queued = queue(&server, "queued").await;
    assert_eq!(queued, [second.clone(), third.clone()]);
    let details = server.get(&format!("/api/v1/runs/{third}")).await.json();
    assert_eq!(
        (&details["status"], &details["queue_position"]),
        (&json!("created"), &json!(2))
    );

    let path = format!("/api/v1/runs/{first}/pause");
    server.post(&path, &json!({})).await.expect(200);
    server.wait_for_status(&first, "paused").await;
    server.wait_for_status(&second, "succeeded").await;
    server.wait_for_status(&third, "succeeded").await;
    assert_eq!(
        queue(&server, "waiting").await,
        std::slice::from_ref(&first)
    );
    // The time in the queue is no active time.
    let budgets = &server.get(&format!("/api/v1/runs/{third}")).await.json()["budgets"];
    let [second_time, third_time] = [&second, &third].map(|run| {
        let events = server.project.events(run);
        events.len()
    });
    assert_eq!(second_time, third_time, "{budgets}");

    let path = format!("/api/v1/runs/{first}/resume");
    server.post(&path, &json!({})).await.expect(200);
    server.wait_for_status(&first, "succeeded").await;
    let expected = ["preparing", "running", "paused", "running", "verifying"];
    assert_eq!(statuses(&server.project, &first)[..5], expected);
    server.stop().await;
}

#[tokio::test]
async fn a_queued_run_is_steered_without_a_worker() {
    let server = server_with_one_worker().await;
    let first = server.start_run().await;
    wait_for_event(&server, &first, "action_started").await;
    let (stopped, paused) = (start_another(&server).await, start_another(&server).await);
    let steer = async |run: &str, verb: &str| {
        let path = format!("/api/v1/runs/{run}/{verb}");
        server.post(&path, &json!({})).await
    };
    steer(&stopped, "stop").await.expect(200);
    server.wait_for_status(&stopped, "stopped").await;
    steer(&paused, "pause").await.expect(200);
    server.wait_for_status(&paused, "paused").await;
    assert!(queue(&server, "queued").await.is_empty());
    assert_eq!(statuses(&server.project, &stopped), ["stopped"]);

    // Its place is at the end of the queue now.
    let last = start_another(&server).await;
    steer(&paused, "resume").await.expect(200);
    assert_eq!(
        queue(&server, "queued").await,
        [last.clone(), paused.clone()]
    );
    for run in [&first, &last, &paused] {
        server.wait_for_status(run, "succeeded").await;
    }
    let refused = steer(&first, "pause").await.expect(409).json();
    assert_eq!(refused["status"], 409, "{refused}");
    steer("260301-100000-0001", "pause").await.expect(404);
    steer("last", "pause").await.expect(404);
    server.stop().await;
}
