//! The ends of streams: who is closed, and with which code.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::get;
use futures_util::SinkExt as _;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_tungstenite::tungstenite::Message;

use super::fixture::{PATIENCE, RUN, Received, StreamFixture, notice, numbers, small_limits};
use crate::live::{CloseCode, LiveStreams, StreamLimits};

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_never_reads_is_closed_and_continues_from_its_last_number() {
    const RECORDS: u64 = 20_000;
    let fixture = StreamFixture::new();
    let mut journal = fixture.create();
    let server = fixture.serve(small_limits()).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let stream = socket.connect(server.address).await.unwrap();
    let url = format!("ws://{}/api/v1/runs/{RUN}/events", server.address);
    let (mut slow, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
    server.wait_until(|streams| streams.clients() == 1).await;
    let mut healthy = server.open("").await;
    let reader = tokio::spawn(async move { healthy.frames_until(RECORDS).await });
    let message = "x".repeat(500);
    while journal.state().seq < RECORDS {
        let count = (RECORDS - journal.state().seq).min(500);
        journal
            .append_all((0..count).map(|_| notice(&message)))
            .unwrap();
    }
    server.wait_until(|streams| streams.too_slow() == 1).await;
    let expected: Vec<u64> = (1..=RECORDS).collect();
    assert_eq!(
        numbers(&reader.await.unwrap()),
        expected,
        "the other client is not affected"
    );
    // Whole frames and the reason of the end arrive when the client reads again.
    let mut seen = Vec::new();
    let code = loop {
        match futures_util::StreamExt::next(&mut slow).await {
            Some(Ok(Message::Text(text))) => {
                let frame: Value = serde_json::from_str(&text).unwrap();
                seen.extend(frame["seq"].as_u64());
            }
            Some(Ok(Message::Close(frame))) => break u16::from(frame.unwrap().code),
            Some(Ok(_)) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(code, 4008);
    let last = *seen.last().unwrap();
    assert!(last < RECORDS, "the client was behind");
    let mut again = server.open(&format!("after={last}")).await;
    seen.extend(numbers(&again.frames_until(RECORDS).await));
    assert_eq!(seen, expected);
    drop((slow, again));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_history_slowly_is_not_too_slow() {
    let fixture = StreamFixture::new();
    let mut journal = fixture.create();
    let message = "x".repeat(1000);
    journal
        .append_all((0..1000).map(|_| notice(&message)))
        .unwrap();
    let limits = StreamLimits {
        grace: Duration::from_millis(400),
        // It answers no pings while it sleeps.
        ping: PATIENCE,
        ..small_limits()
    };
    let server = fixture.serve(limits).await;
    let mut client = server.open("").await;
    let mut seen = Vec::new();
    while seen.len() < 1001 {
        if seen.len() % 100 == 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        seen.extend(client.frame().await["seq"].as_u64());
    }
    assert_eq!(seen, (1..=1001).collect::<Vec<u64>>());
    assert_eq!(server.streams.too_slow(), 0);
    drop(client);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_run_is_4004_also_when_it_is_removed_later() {
    let fixture = StreamFixture::new();
    let journal = fixture.create();
    let server = fixture.serve(StreamLimits::default()).await;
    for id in ["260301-100000-9999", "..%2F..%2Fetc", "last", "260301"] {
        let mut client = server.open_path(&format!("/api/v1/runs/{id}/events")).await;
        assert_eq!(client.next().await, Received::Closed(4004), "{id}");
    }
    let mut client = server.open("").await;
    client.frames_until(1).await;
    drop(journal);
    std::fs::remove_dir_all(fixture.dir.root()).unwrap();
    assert_eq!(client.end().await, Received::Closed(4004));
    server.wait_until(|streams| streams.clients() == 0).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_stream_is_closed_with_the_code() {
    async fn refuse(State(streams): State<LiveStreams>, request: Request) -> Response {
        streams.refuse(request, CloseCode::NotSignedIn, "sign in first")
    }
    let fixture = StreamFixture::new();
    let server = fixture.serve(StreamLimits::default()).await;
    let router = axum::Router::new()
        .fallback(get(refuse))
        .with_state(server.streams.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let refusing = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut client, _) = tokio_tungstenite::client_async(format!("ws://{address}/x"), stream)
        .await
        .unwrap();
    let Some(Ok(Message::Close(Some(frame)))) = futures_util::StreamExt::next(&mut client).await
    else {
        panic!("no close frame");
    };
    assert_eq!(
        (u16::from(frame.code), frame.reason.as_str()),
        (4001, "sign in first")
    );
    refusing.abort();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_journal_ends_the_stream_after_the_last_readable_record() {
    let fixture = StreamFixture::new();
    drop(fixture.create());
    let server = fixture.serve(StreamLimits::default()).await;
    let mut client = server.open("").await;
    assert_eq!(numbers(&client.frames_until(1).await), [1]);
    let mut text = std::fs::read(fixture.dir.journal()).unwrap();
    text.extend(b"\xff\xfe{\"seq\":2}\n");
    let file = std::fs::OpenOptions::new()
        .append(true)
        .open(fixture.dir.journal());
    std::io::Write::write_all(&mut file.unwrap(), b"\xff\xfe{\"seq\":2}\n").unwrap();
    assert_eq!(client.end().await, Received::Closed(1011));
    let mut client = server.open("").await;
    assert_eq!(client.end().await, Received::Closed(1011));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_and_garbage_end_only_their_own_stream() {
    let fixture = StreamFixture::new();
    let mut journal = fixture.create();
    let server = fixture.serve(StreamLimits::default()).await;
    let mut witness = server.open("").await;
    let mut speaker = server.open("").await;
    speaker.socket().send(Message::text("hello")).await.unwrap();
    assert_eq!(speaker.end().await, Received::Closed(1003));
    for garbage in [
        b"\xff\xff\xff\xff\xff\xff".as_slice(),
        b"GET / HTTP/1.1\r\n\r\n",
        &[0x89, 0xff, 0, 0, 0, 0],
    ] {
        let mut client = server.open("").await;
        client.socket().get_mut().write_all(garbage).await.unwrap();
        assert_eq!(client.end().await, Received::Closed(1002));
    }
    let mut leaving = server.open("").await;
    leaving.socket().close(None).await.unwrap();
    assert!(matches!(
        leaving.end().await,
        Received::Closed(_) | Received::Lost
    ));
    journal.append(notice("still here")).unwrap();
    assert_eq!(numbers(&witness.frames_until(2).await), [1, 2]);
    server.wait_until(|streams| streams.clients() == 1).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pings_go_both_ways() {
    let fixture = StreamFixture::new();
    let _journal = fixture.create();
    let server = fixture.serve(small_limits()).await;
    let mut client = server.open("").await;
    client.frames_until(1).await;
    client
        .socket()
        .send(Message::Ping("you there".into()))
        .await
        .unwrap();
    let (mut asked, mut answered) = (0, 0);
    while asked < 5 || answered < 1 {
        let message =
            tokio::time::timeout(PATIENCE, futures_util::StreamExt::next(client.socket())).await;
        match message.unwrap().unwrap().unwrap() {
            Message::Ping(_) => asked += 1,
            Message::Pong(payload) => {
                assert_eq!(payload.as_ref(), b"you there");
                answered += 1;
            }
            Message::Text(_) | Message::Binary(_) | Message::Close(_) | Message::Frame(_) => {
                panic!("unexpected message");
            }
        }
    }
    drop(client);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_answer_pings_is_closed() {
    let fixture = StreamFixture::new();
    let _journal = fixture.create();
    let server = fixture.serve(small_limits()).await;
    let mut client = TcpStream::connect(server.address).await.unwrap();
    let request = format!(
        "GET /api/v1/runs/{RUN}/events HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    client.write_all(request.as_bytes()).await.unwrap();
    let mut received = Vec::new();
    let all = client.read_to_end(&mut received);
    tokio::time::timeout(PATIENCE, all).await.unwrap().unwrap();
    assert_eq!(server.streams.too_slow(), 1);
    drop(client);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_no_handshake_gets_a_problem() {
    let fixture = StreamFixture::new();
    let _journal = fixture.create();
    let server = fixture
        .serve(StreamLimits {
            clients: 0,
            ..StreamLimits::default()
        })
        .await;
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    for (query, headers, status) in [
        ("", String::new(), "426"),
        ("?after=-1", String::new(), "400"),
        ("?since=1", String::new(), "400"),
        ("?output=latest", String::new(), "400"),
        (
            "",
            format!("{upgrade}{key}Sec-WebSocket-Version: 8\r\n"),
            "426",
        ),
        (
            "",
            format!("{upgrade}Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n"),
            "400",
        ),
        (
            "",
            format!("{upgrade}{key}Sec-WebSocket-Version: 13\r\n"),
            "503",
        ),
    ] {
        let mut client = TcpStream::connect(server.address).await.unwrap();
        let request = format!(
            "GET /api/v1/runs/{RUN}/events{query} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n{headers}\r\n"
        );
        client.write_all(request.as_bytes()).await.unwrap();
        let mut response = vec![0; 4096];
        let length = client.read(&mut response).await.unwrap();
        let response = String::from_utf8_lossy(&response[..length]);
        assert!(
            response.starts_with(&format!("HTTP/1.1 {status}")),
            "{query} {headers}: {response}"
        );
    }
    server.stop().await;
}
