//! The export of telemetry to a collector.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::support::{TestProject, TestServer, WAIT_TIMEOUT};

/// The requests that a collector received: path, authorization and body.
type Received = Arc<Mutex<Vec<(String, String, Value)>>>;

/// A collector on loopback.
struct Collector {
    url: String,
    received: Received,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let received = Received::default();
        let shared = received.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let received = shared.clone();
                std::thread::spawn(move || serve(stream.unwrap(), &received));
            }
        });
        Self { url, received }
    }

    /// Returns the spans received so far.
    fn spans(&self) -> Vec<Value> {
        let received = self.received.lock().unwrap();
        let traces = received.iter().filter(|(path, ..)| path == "/v1/traces");
        let spans = traces.flat_map(|(.., body)| {
            let spans = &body["resourceSpans"][0]["scopeSpans"][0]["spans"];
            spans.as_array().unwrap().clone()
        });
        spans.collect()
    }
}

fn serve(stream: TcpStream, received: &Received) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line.trim().is_empty() {
                break;
            }
            head.push(line.trim().to_owned());
        }
        let header = |name: &str| {
            let found = head.iter().filter_map(|line| line.split_once(':'));
            let mut found = found.filter(|(key, _)| key.eq_ignore_ascii_case(name));
            found
                .next()
                .map_or(String::new(), |(_, value)| value.trim().to_owned())
        };
        let mut body = vec![0; header("content-length").parse().unwrap()];
        reader.read_exact(&mut body).unwrap();
        let path = head[0].split(' ').nth(1).unwrap().to_owned();
        let body = serde_json::from_slice(&body).unwrap();
        received
            .lock()
            .unwrap()
            .push((path, header("authorization"), body));
        let response =
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
        reader.get_mut().write_all(response.as_bytes()).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_receives_the_spans_and_the_metrics_of_a_run() {
    let collector = Collector::start();
    let project = TestProject::new()
        .with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url)
        .with_variable(
            "OTEL_EXPORTER_OTLP_HEADERS",
            "authorization=Bearer%20canary",
        )
        .with_variable("OTEL_METRIC_EXPORT_INTERVAL", "100")
        .with_variable("OTEL_SERVICE_NAME", "ralph-test");
    let server = TestServer::start_for(project).await;
    let run = server.start_run().await;
    server.wait_for_status(&run, "succeeded").await;
    let project = server.stop().await;
    drop(project);
    let spans = collector.spans();
    let named =
        |name: &str| -> Vec<&Value> { spans.iter().filter(|span| span["name"] == name).collect() };
    assert_eq!(named("run").len(), 1, "{spans:?}");
    assert_eq!(named("iteration").len(), 1);
    assert_eq!(named("model call").len(), 1);
    assert_eq!(named("action").len(), 3);
    assert!(!named("check").is_empty());
    let root = named("run")[0];
    let iteration = named("iteration")[0];
    assert_eq!(iteration["parentSpanId"], root["spanId"]);
    assert_eq!(named("action")[0]["parentSpanId"], iteration["spanId"]);
    for span in &spans {
        assert_eq!(span["traceId"], root["traceId"]);
        let time = |key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
        assert!(
            time("startTimeUnixNano") <= time("endTimeUnixNano"),
            "{span}"
        );
    }
    let received = collector.received.lock().unwrap();
    assert!(
        received
            .iter()
            .all(|(_, authorization, _)| authorization == "Bearer canary")
    );
    let metrics = received
        .iter()
        .rev()
        .find(|(path, ..)| path == "/v1/metrics")
        .unwrap();
    let resource = metrics.2["resourceMetrics"][0]["resource"].to_string();
    assert!(resource.contains("ralph-test"), "{resource}");
    let text = metrics.2.to_string();
    assert!(
        text.contains("ralph_iterations") && text.contains("ralph_workers"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_collector_does_not_affect_a_run() {
    // A port that accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let project = TestProject::new()
        .with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", &url)
        .with_variable("OTEL_EXPORTER_OTLP_TIMEOUT", "600000");
    let server = TestServer::start_for(project).await;
    let run = server.start_run().await;
    server.wait_for_status(&run, "succeeded").await;
    let started = Instant::now();
    drop(server.stop().await);
    // The collector's timeout is ten minutes.
    assert!(started.elapsed() < WAIT_TIMEOUT);
    sleep(std::time::Duration::ZERO).await;
}
