//! Protocol rules.

use ralph_guest::best_effort;
use ralph_guest::wire::{Flow, Link, LinkSide, MAX_MESSAGE, OpenStreamError, WINDOW};
use tokio::io::{AsyncWriteExt as _, duplex, split};

/// Encodes a frame manually.
fn raw_frame(stream: u32, kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(payload.len()).unwrap().to_le_bytes().to_vec();
    bytes.extend(stream.to_le_bytes());
    bytes.push(kind);
    bytes.extend(payload);
    bytes
}

#[tokio::test]
async fn a_protocol_violation_closes_the_connection() {
    let full = vec![0; 256 * 1024];
    let flood: Vec<u8> = (0..5).flat_map(|_| raw_frame(1, 2, &full)).collect();
    let many: Vec<u8> = (0..300).flat_map(|_| raw_frame(1, 1, b"{}")).collect();
    let cases = [
        (flood, "the peer sent more bytes than its credit allows"),
        (many, "too many unread messages"),
        (raw_frame(1, 0, b"{}"), "a stream was opened twice"),
        (
            raw_frame(1, 5, &1_u32.to_le_bytes()),
            "the peer returned more credit than was used",
        ),
        (raw_frame(1, 5, b"x"), "invalid credit frame"),
        (raw_frame(1, 99, b""), "unknown frame kind 99"),
    ];
    for (bytes, expected) in cases {
        let (near, mut far) = duplex(1 << 20);
        let (reader, writer) = split(near);
        let (link, mut incoming, transfer) = Link::new(LinkSide::Host, reader, writer);
        let mut sent = raw_frame(1, 0, b"{}");
        sent.extend(bytes);
        let feed = async {
            // The other side may close the connection first.
            best_effort(far.write_all(&sent).await);
            std::future::pending::<()>().await;
        };
        let error = tokio::select! {
            result = transfer => result.unwrap_err().to_string(),
            () = feed => unreachable!("the feed never ends"),
        };
        assert_eq!(error, expected);
        assert!(link.is_closed());
        let mut opened = incoming.recv().await.expect("the stream was opened");
        while opened.stream.messages.next().await.is_some() {}
        assert_eq!(link.open(&"late").map(drop), Err(OpenStreamError::Closed));
    }
}

#[tokio::test]
async fn at_most_one_window_is_in_flight() {
    let (near, far) = duplex(1 << 16);
    let (reader, writer) = split(near);
    let (host, _none, transfer_host) = Link::new(LinkSide::Host, reader, writer);
    let (reader, writer) = split(far);
    let (_guest, mut incoming, transfer_guest) = Link::new(LinkSide::Guest, reader, writer);
    let exchange = async {
        let long = "x".repeat(MAX_MESSAGE);
        assert_eq!(host.open(&long).map(drop), Err(OpenStreamError::TooLong));
        let stream = host.open(&"open").unwrap();
        let mut receiver = incoming.recv().await.unwrap().stream;
        stream.sender.send_all(Flow::Main, &vec![7; WINDOW]).await;
        assert!(!stream.sender.has_room(1));
        let mut bytes = 0;
        while bytes < WINDOW {
            bytes += receiver.data.next().await.unwrap().1.len();
        }
        stream.sender.wait_for_room(WINDOW / 2).await;
        drop(receiver);
        // The receiver was dropped, so nothing blocks the sender.
        stream
            .sender
            .send_all(Flow::Main, &vec![7; 3 * WINDOW])
            .await;
        assert!(stream.sender.is_closed());
    };
    tokio::select! {
        () = exchange => {}
        ended = transfer_host => panic!("{ended:?}"),
        ended = transfer_guest => panic!("{ended:?}"),
    }
}
