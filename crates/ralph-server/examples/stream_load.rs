//! Clients of a server of events over WebSocket, for measurements. `bench/server` runs it and explains
//! the numbers.
//!
//! usage: `stream_load ADDRESS PATH TOKEN CLIENTS SILENT`, with `-` for no token
//!
//! It opens the clients, of which the last `SILENT` never read, prints `{"connected"}`, and then reads
//! lines from standard input:
//! - `frames N`: waits until each client has received N events since the last such line, and prints the
//!   microseconds between the first and the last of them
//! - `lines N`: waits until each client has received N lines of output, and prints how old they
//!   were, in microseconds. A line contains the time at which it was written, as `t=` and microseconds

use std::io::{BufRead as _, Write as _};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

type LoadError = Box<dyn std::error::Error + Send + Sync>;

/// The longest wait for frames.
const PATIENCE: Duration = Duration::from_mins(5);
/// The bytes that are read at once.
const READ_BYTES: usize = 256 << 10;
/// The delays are counted in classes of this many microseconds.
const CLASS_MICROS: u64 = 500;
const CLASSES: usize = 40_000;
/// A masked pong without a payload.
const PONG: [u8; 6] = [0x8a, 0x80, 0, 0, 0, 0];

/// What all clients received.
struct Received {
    started: Instant,
    /// The events of each client since the start.
    frames: Vec<AtomicU64>,
    /// The time of the first event since the last order, and of the last one, in microseconds.
    first: AtomicU64,
    last: AtomicU64,
    lines: Vec<AtomicU64>,
    gaps: AtomicU64,
    lost: AtomicU64,
    delays: Mutex<Vec<u64>>,
}

fn main() -> Result<(), LoadError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, path, token, clients, silent] = arguments.as_slice() else {
        return Err("usage: stream_load ADDRESS PATH TOKEN CLIENTS SILENT".into());
    };
    let (address, clients, silent): (SocketAddr, usize, usize) =
        (address.parse()?, clients.parse()?, silent.parse()?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let counted = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
    let received = Arc::new(Received {
        started: Instant::now(),
        frames: counted(clients - silent),
        first: AtomicU64::new(u64::MAX),
        last: AtomicU64::new(0),
        lines: counted(clients - silent),
        gaps: AtomicU64::new(0),
        lost: AtomicU64::new(0),
        delays: Mutex::new(vec![0; CLASSES]),
    });
    runtime.block_on(async {
        let mut unread = Vec::new();
        for client in 0..clients {
            let stream = connect(address, path, token).await?;
            if client < clients - silent {
                tokio::spawn(read(stream, client, received.clone()));
            } else {
                unread.push(stream);
            }
        }
        print(&json!({ "connected": clients }))?;
        let mut wanted = 0;
        for line in std::io::stdin().lock().lines() {
            let line = line?;
            let (order, count) = line
                .split_once(' ')
                .ok_or("an order is a word and a number")?;
            let count: u64 = count.parse()?;
            match order {
                "frames" => {
                    wanted += count;
                    received.wait(&received.frames, wanted).await?;
                    print(&received.take_times())?;
                }
                "lines" => {
                    received.wait(&received.lines, count).await?;
                    print(&received.delays())?;
                }
                _ => return Err(format!("unknown order `{order}`").into()),
            }
        }
        Ok(())
    })
}

fn print(value: &serde_json::Value) -> std::io::Result<()> {
    let mut output = std::io::stdout();
    writeln!(output, "{value}")?;
    output.flush()
}

/// Opens a WebSocket; returns it behind the server's response.
async fn connect(address: SocketAddr, path: &str, token: &str) -> Result<TcpStream, LoadError> {
    let mut stream = TcpStream::connect(address).await?;
    let credential = match token {
        "-" => String::new(),
        token => format!("Authorization: Bearer {token}\r\n"),
    };
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n{credential}\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut response = Vec::new();
    while !response.ends_with(b"\r\n\r\n") {
        response.push(stream.read_u8().await?);
    }
    if !response.starts_with(b"HTTP/1.1 101") {
        return Err(String::from_utf8_lossy(&response).into_owned().into());
    }
    Ok(stream)
}

/// Counts the frames of a client until its end.
async fn read(stream: TcpStream, client: usize, received: Arc<Received>) {
    thread_local! {
        static BUFFER: std::cell::RefCell<Vec<u8>> = std::cell::RefCell::new(vec![0; READ_BYTES]);
    }
    let mut frames = FrameCounter::default();
    loop {
        if stream.readable().await.is_err() {
            break;
        }
        let read = BUFFER.with_borrow_mut(|buffer| {
            let read = stream.try_read(buffer)?;
            frames.push(&buffer[..read], client, &received);
            std::io::Result::Ok(read)
        });
        match read {
            Ok(0) => break,
            // A server closes connections without an answer.
            Ok(_) if std::mem::take(&mut frames.has_ping) => {
                if stream.try_write(&PONG).is_err() {
                    break;
                }
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
    }
    received.lost.fetch_add(1, Relaxed);
}

/// Splits the bytes of a server into frames.
#[derive(Default)]
struct FrameCounter {
    /// The part of a frame that has arrived.
    part: Vec<u8>,
    /// The position in the output.
    at: u64,
    has_ping: bool,
}

impl FrameCounter {
    fn push(&mut self, bytes: &[u8], client: usize, received: &Received) {
        let joined;
        let mut rest = if self.part.is_empty() {
            bytes
        } else {
            self.part.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.part);
            joined.as_slice()
        };
        let mut events = 0;
        while let Some((opcode, payload, after)) = split_frame(rest) {
            rest = after;
            self.has_ping |= opcode == 9;
            if opcode != 1 || payload.starts_with(b"{\"type\":\"hello\"") {
                continue;
            }
            if payload.starts_with(b"{\"type\":\"output\"") {
                self.count_lines(payload, client, received);
            } else {
                events += 1;
            }
        }
        self.part = rest.to_vec();
        if events > 0 {
            let now = micros(received.started.elapsed());
            received.first.fetch_min(now, Relaxed);
            received.last.fetch_max(now, Relaxed);
            received.frames[client].fetch_add(events, Relaxed);
        }
    }

    fn count_lines(&mut self, payload: &[u8], client: usize, received: &Received) {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, micros);
        let head = String::from_utf8_lossy(&payload[..payload.len().min(200)]).into_owned();
        let (from, to) = (number(&head, "\"from\":"), number(&head, "\"to\":"));
        if from != self.at {
            received.gaps.fetch_add(1, Relaxed);
        }
        self.at = to;
        let mut delays = received
            .delays
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut lines = 0;
        for (index, _) in payload
            .windows(2)
            .enumerate()
            .filter(|(_, pair)| *pair == b"t=")
        {
            let digits = payload[index + 2..]
                .iter()
                .take_while(|byte| byte.is_ascii_digit());
            let written = digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
            // The line that names the command has no time.
            if written > 0 {
                let class = usize::try_from(now.saturating_sub(written) / CLASS_MICROS);
                delays[class.map_or(CLASSES - 1, |class| class.min(CLASSES - 1))] += 1;
                lines += 1;
            }
        }
        received.lines[client].fetch_add(lines, Relaxed);
    }
}

/// Returns opcode and payload of the first frame, and the bytes after it.
fn split_frame(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (header, length) = match *bytes.get(1)? {
        126 => (
            4,
            u64::from(u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?)),
        ),
        127 => (10, u64::from_be_bytes(*bytes.get(2..)?.first_chunk()?)),
        length => (2, u64::from(length)),
    };
    let end = usize::try_from(length).map_or(usize::MAX, |length| header + length);
    Some((bytes[0] & 15, bytes.get(header..end)?, &bytes[end..]))
}

fn number(text: &str, name: &str) -> u64 {
    let digits = text.split_once(name).map_or("", |(_, rest)| rest);
    let digits = digits.bytes().take_while(u8::is_ascii_digit);
    digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl Received {
    async fn wait(&self, counts: &[AtomicU64], wanted: u64) -> Result<(), LoadError> {
        let end = Instant::now() + PATIENCE;
        let least = || {
            counts
                .iter()
                .map(|count| count.load(Relaxed))
                .min()
                .unwrap_or(wanted)
        };
        while least() < wanted {
            let lost = self.lost.load(Relaxed);
            if lost > 0 || Instant::now() > end {
                return Err(
                    format!("{} of {wanted} received, {lost} clients lost", least()).into(),
                );
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    fn take_times(&self) -> serde_json::Value {
        let first = self.first.swap(u64::MAX, Relaxed);
        let last = self.last.swap(0, Relaxed);
        json!({ "microseconds": last.saturating_sub(first) })
    }

    fn delays(&self) -> serde_json::Value {
        let delays = self.delays.lock().unwrap_or_else(PoisonError::into_inner);
        let total: u64 = delays.iter().sum();
        let permille = |part: u64| {
            let mut seen = 0;
            let found = delays.iter().position(|count| {
                seen += count;
                seen * 1000 >= total * part
            });
            found.map_or(0, |class| class as u64 + 1) * CLASS_MICROS
        };
        json!({
            "lines": total,
            "gaps": self.gaps.load(Relaxed),
            "p50": permille(500),
            "p99": permille(990),
            "max": permille(1000),
        })
    }
}
