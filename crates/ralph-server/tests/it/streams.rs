//! The stream of all runs of a real server.

use serde_json::Value;

use crate::support::{TestServer, TestStream};

async fn open(server: &TestServer, query: &str) -> TestStream {
    let path = format!("/api/v1/events{query}");
    let credential = format!("Bearer {}", server.token);
    TestStream::open(server, &path, ("authorization", &credential)).await
}

/// Reads the events of a run, up to this one. Other frames are left out.
async fn read_until(stream: &mut TestStream, run: &str, last: u64) -> Vec<Value> {
    let mut events = Vec::new();
    while events
        .last()
        .is_none_or(|event: &Value| event["seq"] != last)
    {
        let frame = stream.next().await.unwrap();
        if frame["run"] == run && frame["seq"].is_u64() {
            events.push(frame);
        }
    }
    events
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_all_runs_continues_after_a_restart_of_the_server() {
    let server = TestServer::start().await;
    let mut stream = open(&server, "").await;
    assert_eq!(stream.next().await.unwrap()["reset"], false);
    let run = server.start_run().await;
    server.wait_for_status(&run, "succeeded").await;
    let recorded = server.project.events(&run);
    let last = recorded.len() as u64;
    let events = read_until(&mut stream, &run, last).await;
    let data: Vec<&Value> = events.iter().map(|event| &event["data"]).collect();
    assert_eq!(data, recorded.iter().collect::<Vec<_>>());
    let project = server.stop().await;
    assert_eq!(stream.close_code().await, 1001);

    let server = TestServer::start_for(project).await;
    let middle = events.len() / 2;
    let cursor = events[middle]["cursor"].as_str().unwrap();
    let mut stream = open(&server, &format!("?cursor={cursor}")).await;
    let hello = stream.next().await.unwrap();
    assert_eq!(
        (&hello["reset"], &hello["cursor"]),
        (&Value::Bool(false), &events[middle]["cursor"])
    );
    assert_eq!(
        read_until(&mut stream, &run, last).await,
        events[middle + 1..]
    );
    let another = server.start_run().await;
    let first = read_until(&mut stream, &another, 1).await;
    assert_eq!(first[0]["data"]["type"], "run_created");
    server.stop().await;
}
