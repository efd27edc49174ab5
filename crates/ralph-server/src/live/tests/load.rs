//! A command that prints quickly, beside clients that never read.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::net::TcpSocket;
use tokio_tungstenite::WebSocketStream;

use super::fixture::{RUN, StreamClient, StreamFixture, StreamServer};
use crate::live::StreamLimits;

/// The lines that are written at once, and their number: 10,000 lines per second for 6 s.
const BLOCK: usize = 100;
const BLOCKS: usize = 600;
const BLOCK_TIME: Duration = Duration::from_millis(10);
const LINES: usize = BLOCK * BLOCKS;
/// The length of a line: all lines are more than the sockets of a client accept.
const LINE_BYTES: usize = 200;
const HEALTHY: usize = 10;
const SILENT: usize = 10;
/// Half of the bytes that the silent clients do not read.
const MAX_GAINED_KIB: u64 = 60 << 10;

fn line(number: usize) -> String {
    format!("  line {number:07} {}\n", "x".repeat(LINE_BYTES - 16))
}

/// Writes the lines at their rate.
fn flood(path: PathBuf) {
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    let mut due = Instant::now();
    for first in (0..LINES).step_by(BLOCK) {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        due += BLOCK_TIME;
        let lines: String = (first..first + BLOCK).map(line).collect();
        file.write_all(lines.as_bytes()).unwrap();
    }
}

/// Opens a stream whose client never reads more than the handshake.
async fn open_silent(server: &StreamServer) -> WebSocketStream<tokio::net::TcpStream> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let stream = socket.connect(server.address).await.unwrap();
    let url = format!("ws://{}/api/v1/runs/{RUN}/events", server.address);
    tokio_tungstenite::client_async(url, stream)
        .await
        .unwrap()
        .0
}

/// Reads all lines and checks their order.
async fn read_lines(mut client: StreamClient) {
    let (mut at, mut number, mut rest) = (0, 0, String::new());
    while number < LINES {
        let frame = client.frame().await;
        if frame["type"] != "output" {
            continue;
        }
        assert_eq!(frame["from"], at, "no gap and nothing twice");
        at = frame["to"].as_u64().unwrap();
        rest.push_str(frame["text"].as_str().unwrap());
        let whole = rest.rfind('\n').map_or(0, |end| end + 1);
        for found in rest[..whole].split_inclusive('\n') {
            assert!(found == line(number), "line {number} is {found:?}");
            number += 1;
        }
        rest.drain(..whole);
    }
}

/// Returns a number of the memory of this process; 0 on systems without `/proc`.
fn memory_kib(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_else(|_| String::new());
    let line = status.lines().find(|line| line.starts_with(name));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.map_or(0, |number| number.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_lines_per_second_reach_ten_clients_beside_ten_that_never_read() {
    let fixture = StreamFixture::new();
    let _journal = fixture.create();
    fixture.write_output(1, b"");
    let limits = StreamLimits {
        grace: Duration::from_secs(1),
        check: Duration::from_millis(100),
        // A client that is closed still accepts nothing.
        closing: Duration::from_millis(100),
        ..StreamLimits::default()
    };
    let server = fixture.serve(limits).await;
    let mut silent = Vec::new();
    for _ in 0..SILENT {
        silent.push(open_silent(&server).await);
    }
    let mut clients = Vec::new();
    for _ in 0..HEALTHY {
        clients.push(server.open("output=1:0").await);
    }
    let before = memory_kib("VmRSS:");
    let path = fixture.dir.live_output(1);
    let writer = thread::spawn(move || flood(path));
    join_all(clients.into_iter().map(read_lines)).await;
    let gained = memory_kib("VmHWM:").saturating_sub(before);
    assert!(gained <= MAX_GAINED_KIB, "{gained} KiB");
    writer.join().unwrap();
    let written = fs::read_to_string(fixture.dir.live_output(1)).unwrap();
    let mut wrong = written.split_inclusive('\n').enumerate();
    assert_eq!(wrong.find(|(number, found)| *found != line(*number)), None);
    assert_eq!(written.len(), LINES * LINE_BYTES);
    server
        .wait_until(|streams| streams.too_slow() == SILENT as u64)
        .await;
    drop(silent);
    server.stop().await;
}
