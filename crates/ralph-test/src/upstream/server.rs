//! The server of a fake upstream.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, header};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::scenario::{FakeUpstreamApi, ScenarioReply, ScenarioStep, UpstreamScenario};
use super::wire::FakeRequestInfo;

type FakeUpstreamBody = UnsyncBoxBody<Bytes, io::Error>;

/// A recorded request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedRequest {
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The headers in order, with lowercase names.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl RecordedRequest {
    /// Returns the first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// Returns the body as JSON, or `null` if it is not valid JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

/// A model provider on a loopback port that stops when it is dropped.
///
/// It runs on its own thread, so that tests with and without a runtime can use it. In addition to
/// the protocols of [`FakeUpstreamApi`] it answers `HEAD /api/hello`, refuses a `WebSocket` upgrade
/// with 426 and everything else with 404.
#[derive(Debug)]
pub struct FakeUpstream {
    address: SocketAddr,
    state: Arc<FakeUpstreamState>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct FakeUpstreamState {
    scenario: UpstreamScenario,
    log: Mutex<FakeUpstreamLog>,
    count: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct FakeUpstreamLog {
    requests: Vec<RecordedRequest>,
    answered: BTreeMap<FakeUpstreamApi, usize>,
}

impl FakeUpstream {
    /// Starts the server with a scenario.
    ///
    /// # Panics
    /// If no loopback port is available.
    pub fn start(scenario: UpstreamScenario) -> Self {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a loopback port");
        let address = listener.local_addr().expect("the address of a listener");
        listener
            .set_nonblocking(true)
            .expect("a listener that does not block");
        let state = Arc::new(FakeUpstreamState {
            scenario,
            log: Mutex::default(),
            count: watch::Sender::new(0),
        });
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&state);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).expect("a listener");
                tokio::select! {
                    () = serve(&listener, &served) => {}
                    _ = stopped => {}
                }
            });
        });
        Self {
            address,
            state,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Returns the base URL, such as `http://127.0.0.1:40123`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns all requests so far.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.state.lock_log().requests.clone()
    }

    /// Returns the requests so far that were sent to a model.
    pub fn model_requests(&self) -> Vec<RecordedRequest> {
        let mut requests = self.requests();
        requests.retain(|request| {
            request.method == "POST"
                && FakeUpstreamApi::from_path(path_without_query(&request.path)).is_some()
        });
        requests
    }

    /// Waits until this many requests have arrived.
    pub async fn wait_for_requests(&self, requests: usize) {
        let mut count = self.state.count.subscribe();
        let enough = count.wait_for(|count| *count >= requests).await;
        drop(enough);
    }
}

impl Drop for FakeUpstream {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the server has been printed; repeating it would hide the test's own.
            let _ended: std::thread::Result<()> = thread.join();
        }
    }
}

impl FakeUpstreamState {
    fn lock_log(&self) -> MutexGuard<'_, FakeUpstreamLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a request and returns its number within its protocol.
    fn record(&self, request: RecordedRequest, api: Option<FakeUpstreamApi>) -> usize {
        let mut log = self.lock_log();
        log.requests.push(request);
        let total = log.requests.len();
        let number = api.map_or(0, |api| {
            let answered = log.answered.entry(api).or_default();
            *answered += 1;
            *answered - 1
        });
        drop(log);
        self.count.send_replace(total);
        number
    }
}

async fn serve(listener: &TcpListener, state: &Arc<FakeUpstreamState>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let state = Arc::clone(state);
        connections.spawn(async move {
            let service = service_fn(|request| handle_request(&state, request));
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
            // Some tests disconnect on purpose.
            drop(connection);
        });
    }
}

async fn handle_request(
    state: &FakeUpstreamState,
    request: Request<Incoming>,
) -> Result<Response<FakeUpstreamBody>, Infallible> {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let body = body
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes);
    let recorded = RecordedRequest {
        method: head.method.to_string(),
        path: head.uri.to_string(),
        headers: head
            .headers
            .iter()
            .map(|(name, value)| {
                let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
                (name.to_string(), value)
            })
            .collect(),
        // A client that disconnects early has no complete body; its headers are still recorded.
        body: body.map_or_else(|_| Vec::new(), |bytes| bytes.to_vec()),
    };
    let api = FakeUpstreamApi::from_path(&path).filter(|_| head.method == Method::POST);
    let json = recorded.json();
    let number = state.record(recorded, api);
    if head.headers.contains_key(header::UPGRADE) {
        return Ok(text_response(426, ""));
    }
    if head.method == Method::HEAD && path == "/api/hello" {
        return Ok(text_response(200, ""));
    }
    let Some((api, step)) = api.and_then(|api| Some((api, state.scenario.step(api, number)?)))
    else {
        return Ok(text_response(404, "no such thing here"));
    };
    tokio::time::sleep(step.initial_delay).await;
    Ok(play_step(api, step, number, &json))
}

/// Returns the step with its reported output tokens capped at the request's limit. The text is not cut.
fn within_limit(step: &ScenarioStep, request: &Value) -> ScenarioStep {
    let keys = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
    let limit = keys.iter().filter_map(|key| request[key].as_u64()).min();
    let mut step = step.clone();
    let output_tokens = &mut step.usage.output_tokens;
    *output_tokens = limit.map_or(*output_tokens, |limit| limit.min(*output_tokens));
    step
}

fn play_step(
    api: FakeUpstreamApi,
    step: &ScenarioStep,
    number: usize,
    request: &Value,
) -> Response<FakeUpstreamBody> {
    let step = &within_limit(step, request);
    let info = FakeRequestInfo {
        number,
        model: request["model"].as_str().unwrap_or_default(),
    };
    let mut response = if let ScenarioReply::Error { status, message } = &step.reply {
        json_response(*status, &api.error(*status, message))
    } else if let ScenarioReply::Body { status, body } = &step.reply {
        json_response(*status, body)
    } else if request["stream"] == true {
        let mut response = Response::new(events(step, api.events(step, &info)));
        response.headers_mut().insert(
            header::CONTENT_TYPE,
            header::HeaderValue::from_static("text/event-stream"),
        );
        response
    } else if matches!(step.reply, ScenarioReply::Cut(_)) {
        // Without a stream nothing is sent before the connection breaks.
        Response::new(events(step, Vec::new()))
    } else {
        json_response(200, &api.object(step, &info))
    };
    for (name, value) in &step.headers {
        let name = header::HeaderName::try_from(name).expect("the name of a header");
        let value = header::HeaderValue::try_from(value).expect("the value of a header");
        response.headers_mut().insert(name, value);
    }
    response
}

/// Sends events one by one, then breaks the connection if the step is a cut.
fn events(step: &ScenarioStep, events: Vec<String>) -> FakeUpstreamBody {
    let mut frames: Vec<(Duration, Result<Frame<Bytes>, io::Error>)> = events
        .into_iter()
        .enumerate()
        .map(|(number, event)| {
            let wait = if number == 1 {
                step.stall
            } else {
                Duration::ZERO
            };
            (wait, Ok(Frame::data(Bytes::from(event))))
        })
        .collect();
    if matches!(step.reply, ScenarioReply::Cut(_)) {
        let cut = io::Error::from(io::ErrorKind::ConnectionReset);
        // Time for the events to arrive, because a reset can discard them.
        frames.push((Duration::from_millis(50), Err(cut)));
    }
    let frames = stream::unfold(frames.into_iter(), |mut frames| async move {
        let (wait, frame) = frames.next()?;
        tokio::time::sleep(wait).await;
        Some((frame, frames))
    });
    StreamBody::new(frames).boxed_unsync()
}

fn json_response(status: u16, value: &Value) -> Response<FakeUpstreamBody> {
    let mut response = text_response(status, &value.to_string());
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/json"),
    );
    response
}

fn text_response(status: u16, text: &str) -> Response<FakeUpstreamBody> {
    let body = Full::new(Bytes::from(text.to_owned())).map_err(|never| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = hyper::StatusCode::from_u16(status).expect("a status");
    response
}

fn path_without_query(target: &str) -> &str {
    target.split('?').next().unwrap_or_default()
}
