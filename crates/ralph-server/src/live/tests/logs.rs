//! Parts of logs over HTTP.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::fixture::{RUN, SECRET, StreamFixture, StreamServer};
use crate::live::StreamLimits;

async fn get(server: &StreamServer, path: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request =
        format!("GET /api/v1/runs/{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_read_in_parts_and_a_truncated_one_starts_again() {
    let fixture = StreamFixture::new();
    let _journal = fixture.create();
    let server = fixture.serve(StreamLimits::default()).await;
    let log = fixture.dir.file("activity.log");
    let (status, empty) = get(&server, &format!("{RUN}/logs/activity")).await;
    assert_eq!(
        (status, &empty["text"], &empty["size"]),
        (200, &json!(""), &json!(0))
    );
    std::fs::write(&log, format!("one\ntwo {SECRET}\nthree\n")).unwrap();
    let (_, all) = get(&server, &format!("{RUN}/logs/activity?from=0")).await;
    assert_eq!(
        all["text"],
        "one\ntwo [REDACTED:ANTHROPIC_API_KEY]\nthree\n"
    );
    let (_, tail) = get(&server, &format!("{RUN}/logs/activity?from=-7")).await;
    assert_eq!(
        (&tail["text"], &tail["to"]),
        (&json!("three\n"), &all["size"])
    );
    let mark = all["mark"].as_str().unwrap();
    let next = format!("{RUN}/logs/activity?from={}&mark={mark}", all["to"]);
    let (_, none) = get(&server, &next).await;
    assert_eq!(
        (&none["text"], &none["restarted"]),
        (&json!(""), &json!(false))
    );
    std::fs::write(
        &log,
        "another log that is longer than the one that the client knows\n",
    )
    .unwrap();
    let (_, again) = get(&server, &next).await;
    assert_eq!(
        (&again["restarted"], &again["from"]),
        (&json!(true), &json!(0))
    );
    assert!(again["text"].as_str().unwrap().starts_with("another"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_output_belongs_to_the_open_iteration() {
    let fixture = StreamFixture::new();
    let _journal = fixture.create();
    let server = fixture.serve(StreamLimits::default()).await;
    let path = format!("{RUN}/logs/output");
    assert_eq!(get(&server, &path).await.1["iteration"], Value::Null);
    fixture.dir.reopen_iteration(4).unwrap();
    std::fs::write(fixture.dir.live_output(4), "$ make\n").unwrap();
    let (_, output) = get(&server, &path).await;
    assert_eq!(
        (&output["iteration"], &output["text"]),
        (&json!(4), &json!("$ make\n"))
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_runs_logs_and_parameters_are_refused() {
    let fixture = StreamFixture::new();
    let _journal = fixture.create();
    let server = fixture.serve(StreamLimits::default()).await;
    for (path, status) in [
        (format!("{RUN}/logs/detached"), 404),
        ("260301-100000-9999/logs/errors".to_owned(), 404),
        ("..%2F..%2Fx/logs/errors".to_owned(), 404),
        (format!("{RUN}/logs/errors?limit=0"), 400),
        (format!("{RUN}/logs/errors?limit=2000000"), 400),
        (format!("{RUN}/logs/errors?from=x"), 400),
        (format!("{RUN}/logs/errors?lines=3"), 400),
        (format!("{RUN}/logs/errors?from={}", i64::MIN), 200),
        (format!("{RUN}/logs/errors?from={}", i64::MAX), 200),
    ] {
        assert_eq!(get(&server, &path).await.0, status, "{path}");
    }
    server.stop().await;
}
