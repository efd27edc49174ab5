//! Measures the latency of response events through a proxy. `bench/gate` runs it and explains the
//! numbers.
//!
//! usage: `stream_times PORT INTERVAL`, with the interval in milliseconds
//!
//! The program is both ends of the connection: the provider, which listens on the port and writes
//! an event into each stream per interval, and the client that reads them. Each event contains the
//! time at which it was written, so both ends use the same clock. It reads lines `{"port", "key",
//! "streams", "events"}` from standard input; for each it prints `{"is_open": true}` once all
//! streams have started, and `{"events", "p50", "p99"}` in nanoseconds at their end.

use std::convert::Infallible;
use std::io::{BufRead as _, Write as _};
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Interval, MissedTickBehavior};

type StreamTimesError = Box<dyn std::error::Error + Send + Sync>;

/// Events per stream that are not counted.
const WARM_UP: u64 = 20;

/// The output tokens that a request reserves for each event. The gate cuts a response that is longer
/// than its request allows.
const TOKENS_PER_EVENT: u64 = 32;

/// A measurement to run.
#[derive(Clone, Deserialize)]
struct StreamTimesOrder {
    port: u16,
    key: String,
    streams: u32,
    events: u64,
}

fn main() -> Result<(), StreamTimesError> {
    let mut arguments = std::env::args().skip(1);
    let (Some(port), Some(interval)) = (arguments.next(), arguments.next()) else {
        return Err("usage: stream_times PORT INTERVAL".into());
    };
    let port = port.parse()?;
    let interval = Duration::from_millis(interval.parse()?);
    let sockets = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    sockets.set_nonblocking(true)?;
    // Each end has its own thread, as two programs would.
    std::thread::spawn(move || runtime()?.block_on(serve_upstream(sockets, interval)));
    let reader = runtime()?;
    for line in std::io::stdin().lock().lines() {
        let order: StreamTimesOrder = serde_json::from_str(&line?)?;
        reader.block_on(measure(order, interval))?;
    }
    Ok(())
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

/// Returns the nanoseconds since the first call.
fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let since = START.get_or_init(Instant::now).elapsed();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

// Runs the provider.

async fn serve_upstream(
    sockets: std::net::TcpListener,
    interval: Duration,
) -> Result<(), StreamTimesError> {
    let sockets = TcpListener::from_std(sockets)?;
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = sockets.accept().await?;
        stream.set_nodelay(true)?;
        let service = service_fn(move |request| respond(request, interval));
        let connection = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service);
        // The reader notices a broken connection.
        connections.spawn(async move { drop(connection.await) });
        while connections.try_join_next().is_some() {}
    }
}

async fn respond(
    request: Request<Incoming>,
    interval: Duration,
) -> Result<Response<Events>, StreamTimesError> {
    #[derive(Deserialize)]
    struct StreamTimesRequest {
        max_tokens: u64,
    }
    let body = request.into_body().collect().await?.to_bytes();
    let parsed: StreamTimesRequest = serde_json::from_slice(&body)?;
    let start = tokio::time::Instant::now() + interval;
    let mut ticks = tokio::time::interval_at(start, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut response = Response::new(Events {
        ticks,
        next: 0,
        deltas: parsed.max_tokens / TOKENS_PER_EVENT,
    });
    let kind = "text/event-stream; charset=utf-8".parse()?;
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}

/// A response in Anthropic's event format.
struct Events {
    ticks: Interval,
    next: u64,
    deltas: u64,
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        if this.next > this.deltas + 1 {
            return Poll::Ready(None);
        }
        ready!(this.ticks.poll_tick(cx));
        let event = match this.next {
            0 => concat!(
                r#"event: message_start"#, "\n",
                r#"data: {"type":"message_start","message":{"id":"msg_01","type":"message","role":"assistant","#,
                r#""model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"#,
                r#""usage":{"input_tokens":1200,"cache_read_input_tokens":800,"output_tokens":1}}}"#, "\n\n",
                r#"event: content_block_start"#, "\n",
                r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#, "\n\n",
            )
            .to_owned(),
            last if last == this.deltas + 1 => concat!(
                r#"event: content_block_stop"#, "\n",
                r#"data: {"type":"content_block_stop","index":0}"#, "\n\n",
                r#"event: message_delta"#, "\n",
                r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"#,
                r#""usage":{"output_tokens":700}}"#, "\n\n",
                r#"event: message_stop"#, "\n",
                r#"data: {"type":"message_stop"}"#, "\n\n",
            )
            .to_owned(),
            _ => format!(
                "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\
                 \"delta\":{{\"type\":\"text_delta\",\"text\":\" some words of an answer @{}\"}}}}\n\n",
                now()
            ),
        };
        this.next += 1;
        Poll::Ready(Some(Ok(Frame::data(event.into()))))
    }
}

// Runs the client.

async fn measure(order: StreamTimesOrder, interval: Duration) -> Result<(), StreamTimesError> {
    let started = Arc::new(Semaphore::new(0));
    let mut readers = JoinSet::new();
    for stream in 0..order.streams {
        let (order, started) = (order.clone(), started.clone());
        // Staggered, because the events of many providers coincide only by chance.
        let delay = interval * stream / order.streams;
        readers.spawn(async move {
            tokio::time::sleep(delay).await;
            read(&order, &started).await
        });
    }
    let mut times: Vec<u64> = Vec::new();
    let mut is_open = false;
    loop {
        tokio::select! {
            all = started.acquire_many(order.streams), if !is_open => {
                all?.forget();
                is_open = true;
                print_json(&serde_json::json!({"is_open": true}))?;
            }
            ended = readers.join_next() => match ended {
                Some(ended) => times.extend(ended??),
                None => break,
            },
        }
    }
    times.sort_unstable();
    let at = |part: usize| times.get(times.len() * part / 100);
    print_json(&serde_json::json!({"events": times.len(), "p50": at(50), "p99": at(99)}))
}

fn print_json(value: &serde_json::Value) -> Result<(), StreamTimesError> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{value}")?;
    output.flush()?;
    Ok(())
}

/// Reads one response and returns the latencies of its events, in nanoseconds.
async fn read(order: &StreamTimesOrder, started: &Semaphore) -> Result<Vec<u64>, StreamTimesError> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, order.port)).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    let text = "Read the file and say what is wrong with it. ".repeat(40);
    let body = serde_json::json!({
        "model": "claude-sonnet-4-5", "max_tokens": order.events * TOKENS_PER_EVENT, "stream": true,
        "messages": [{"role": "user", "content": text}],
    });
    let request = Request::post("/v1/messages")
        .header("host", format!("127.0.0.1:{}", order.port))
        .header("content-type", "application/json")
        .header("anthropic-version", "2023-06-01")
        .header("x-api-key", &order.key)
        .body(Full::new(Bytes::from(body.to_string())))?;
    let response = sender.send_request(request).await?;
    let status = response.status();
    let mut body = response.into_body();
    let (mut rest, mut times, mut seen) = (Vec::new(), Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        let arrived = now();
        rest.extend_from_slice(&data);
        while let Some((written, end)) = first_time(&rest) {
            rest.drain(..end);
            seen += 1;
            if seen == 1 {
                started.add_permits(1);
            }
            if seen > WARM_UP {
                times.push(arrived.saturating_sub(written));
            }
        }
    }
    if status != StatusCode::OK || seen != order.events {
        let text = String::from_utf8_lossy(&rest);
        return Err(format!(
            "port {} answered {status}, {seen} events: {text}",
            order.port
        )
        .into());
    }
    Ok(times)
}

/// Returns the time in the first event and the offset after it.
fn first_time(bytes: &[u8]) -> Option<(u64, usize)> {
    let start = bytes.iter().position(|b| *b == b'@')? + 1;
    let length = bytes[start..].iter().position(|b| *b == b'"')?;
    let Ok(digits) = str::from_utf8(&bytes[start..start + length]) else {
        return None;
    };
    Some((ralph_core::parse_value(digits)?, start + length))
}
