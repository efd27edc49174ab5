use http_body_util::Full;
use hyper::Method;

use crate::support::TestServer;

#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_the_work_of_the_server() {
    let server = TestServer::start().await;
    let run = server.start_run().await;
    server.wait_for_status(&run, "succeeded").await;
    server.get("/api/v1/no-such-resource").await.expect(404);
    let metrics = server.get("/metrics").await.expect(200);
    assert!(
        metrics
            .header("content-type")
            .starts_with("application/openmetrics-text")
    );
    let text = metrics.text();
    let value = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        let line = line.unwrap_or_else(|| panic!("no {name} in {text}"));
        line.rsplit_once(' ').unwrap().1.trim_end_matches(".0")
    };
    assert_eq!(value("ralph_model_calls_total "), "1");
    assert_eq!(value("ralph_tokens_total{kind=\"input\"} "), "10");
    assert_eq!(
        value("ralph_status_changes_total{status=\"succeeded\"} "),
        "1"
    );
    assert_eq!(value("ralph_iteration_duration_seconds_count "), "1");
    assert_eq!(value("ralph_queue_length "), "0");
    assert_eq!(value("ralph_workers "), "2");
    assert_ne!(value("process_resident_memory_bytes "), "0");
    let created = "ralph_http_request_duration_seconds_count{method=\"POST\",route=\"/api/v1/runs\",status=\"201\"} ";
    assert_eq!(value(created), "1");
    // The route of the pages accepts every other path.
    let missing = "ralph_http_request_duration_seconds_count{method=\"GET\",route=\"/{*path}\",status=\"404\"} ";
    assert_eq!(value(missing), "1");
    // Ids and paths would make the number of labels unbounded.
    assert!(!text.contains(&run), "{text}");
    assert!(text.ends_with("# EOF\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_need_the_token() {
    let server = TestServer::start().await;
    let request = server.bare_request(Method::GET, "/metrics");
    server
        .send(request.body(Full::default()).unwrap())
        .await
        .expect(401);
}
