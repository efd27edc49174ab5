//! A server with streams of small limits, a run, and a client.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::FromRef;
use futures_util::StreamExt as _;
use ralph_app::App;
use ralph_app::config::Environment;
use ralph_core::budget::BudgetLimits;
use ralph_core::event::{Event, RunEvent};
use ralph_core::id::{CommitId, Digest, RunId, TaskId};
use ralph_core::plan::{Delivery, EngineKind, RunPlan};
use ralph_core::ports::Isolation;
use ralph_core::secret::Redactor;
use ralph_engine::journal::Journal;
use ralph_engine::store::{RunDir, StateDir};
use ralph_test::TestClock;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::api::{log_routes, stream_routes};
use crate::index::RunIndex;
use crate::live::{LiveStreams, StreamLimits};

/// A secret of the server's environment, which no pattern recognises.
pub(super) const SECRET: &str = "correct horse battery staple";
pub(super) const RUN: &str = "260301-100000-0001";
/// The longest wait for a state.
pub(super) const PATIENCE: Duration = Duration::from_mins(2);

/// A small generator of pseudo-random numbers, so that a failure can be repeated.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A state directory with a run.
pub(super) struct StreamFixture {
    home: tempfile::TempDir,
    pub(super) dir: RunDir,
    pub(super) run: RunId,
}

/// The state of the routes.
#[derive(Clone)]
struct StreamContext {
    app: Arc<App>,
    streams: LiveStreams,
}

impl FromRef<StreamContext> for Arc<App> {
    fn from_ref(context: &StreamContext) -> Self {
        context.app.clone()
    }
}

impl FromRef<StreamContext> for LiveStreams {
    fn from_ref(context: &StreamContext) -> Self {
        context.streams.clone()
    }
}

/// A server that listens.
pub(super) struct StreamServer {
    pub(super) streams: LiveStreams,
    pub(super) address: SocketAddr,
    task: JoinHandle<()>,
    stop_index: watch::Sender<bool>,
    index: JoinHandle<()>,
}

/// A frame, or the end of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Received {
    Frame(Value),
    Closed(u16),
    /// The connection ended without a close frame.
    Lost,
}

/// A client of a stream.
pub(super) struct StreamClient(WebSocketStream<TcpStream>);

impl StreamFixture {
    pub(super) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let state = StateDir::open(home.path().join("state")).unwrap();
        let run = RunId::parse(RUN).unwrap();
        Self {
            dir: state.run(&run),
            run,
            home,
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.home.path()
    }

    pub(super) fn create(&self) -> Journal {
        self.create_run(&self.run)
    }

    /// Creates another run.
    pub(super) fn create_run(&self, run: &RunId) -> Journal {
        let clock = TestClock::running();
        Journal::create(&self.run_dir(run), plan(run), clock, Redactor::default()).unwrap()
    }

    pub(super) fn run_dir(&self, run: &RunId) -> RunDir {
        let state = StateDir::open(self.path().join("state")).unwrap();
        state.run(run)
    }

    /// Returns the database of the index.
    pub(super) fn index_file(&self) -> PathBuf {
        self.path().join("state/index.db")
    }

    pub(super) fn open(&self) -> Journal {
        Journal::open(&self.dir, TestClock::running(), Redactor::default()).unwrap()
    }

    pub(super) async fn serve(&self, limits: StreamLimits) -> StreamServer {
        let variables = [
            ("RALPH_HOME", self.path().join("state")),
            ("HOME", self.path().to_owned()),
            ("ANTHROPIC_API_KEY", SECRET.into()),
        ];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        let app = App::new(Environment::new(variables, self.path().to_owned()));
        let app = Arc::new(app);
        let index = RunIndex::new(app.clone()).unwrap();
        let streams = LiveStreams::new(app.clone(), index.clone(), limits);
        let (stop_index, index_stopped) = watch::channel(false);
        let index = tokio::spawn(async move { index.maintain(index_stopped).await });
        let documented = stream_routes::<StreamContext>().merge(log_routes());
        let (api, _) = documented.split_for_parts();
        let context = StreamContext {
            app,
            streams: streams.clone(),
        };
        let router = Router::new().nest("/api/v1", api).with_state(context);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serve = async move { axum::serve(listener, router).await.unwrap() };
        StreamServer {
            streams,
            address,
            task: tokio::spawn(serve),
            stop_index,
            index,
        }
    }
}

impl StreamServer {
    /// Opens the stream of the run.
    pub(super) async fn open(&self, query: &str) -> StreamClient {
        self.open_path(&format!("/api/v1/runs/{RUN}/events?{query}"))
            .await
    }

    /// Opens the stream of all runs behind a cursor, or with new events.
    pub(super) async fn open_feed(&self, cursor: Option<&str>) -> StreamClient {
        let query = cursor.map_or(String::new(), |cursor| format!("?cursor={cursor}"));
        self.open_path(&format!("/api/v1/events{query}")).await
    }

    pub(super) async fn open_path(&self, path: &str) -> StreamClient {
        let url = format!("ws://{}{path}", self.address);
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (client, response) = tokio_tungstenite::client_async(url, stream).await.unwrap();
        assert_eq!(response.status(), 101);
        StreamClient(client)
    }

    pub(super) async fn stop(self) {
        self.streams.close().await;
        self.stop_index.send_replace(true);
        self.index.await.unwrap();
        self.task.abort();
        assert!(self.task.await.is_err());
    }

    /// Ends the server without a word to its clients.
    pub(super) async fn kill(self) {
        for task in [self.task, self.index] {
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
        }
        self.streams.abort();
    }

    pub(super) async fn wait_until(&self, condition: impl Fn(&LiveStreams) -> bool) {
        let streams = self.streams.clone();
        wait_until(move || condition(&streams)).await;
    }
}

impl StreamClient {
    /// Returns the next frame; pings are answered.
    pub(super) async fn next(&mut self) -> Received {
        loop {
            let message = timeout(PATIENCE, self.0.next())
                .await
                .expect("a frame in time");
            match message {
                Some(Ok(Message::Text(text))) => {
                    return Received::Frame(serde_json::from_str(&text).unwrap());
                }
                Some(Ok(Message::Close(frame))) => {
                    return Received::Closed(frame.map_or(0, |frame| frame.code.into()));
                }
                Some(Ok(Message::Ping(_))) => {}
                None | Some(Err(_)) => return Received::Lost,
                Some(Ok(Message::Binary(_) | Message::Pong(_) | Message::Frame(_))) => {
                    panic!("unexpected message");
                }
            }
        }
    }

    pub(super) async fn frame(&mut self) -> Value {
        match self.next().await {
            Received::Frame(frame) => frame,
            ended @ (Received::Closed(_) | Received::Lost) => panic!("the stream ended: {ended:?}"),
        }
    }

    /// Returns the frames up to the record with this number, without the first one of the stream.
    pub(super) async fn frames_until(&mut self, seq: u64) -> Vec<Value> {
        let mut frames = Vec::new();
        while frames.last().is_none_or(|last: &Value| last["seq"] != seq) {
            let frame = self.frame().await;
            if frame["type"] != "hello" {
                frames.push(frame);
            }
        }
        frames
    }

    /// Returns the end of the stream.
    pub(super) async fn end(&mut self) -> Received {
        loop {
            match self.next().await {
                Received::Frame(_) => {}
                ended @ (Received::Closed(_) | Received::Lost) => return ended,
            }
        }
    }

    pub(super) fn socket(&mut self) -> &mut WebSocketStream<TcpStream> {
        &mut self.0
    }
}

pub(super) async fn wait_until(condition: impl Fn() -> bool) {
    let waited = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, waited).await.expect("the state in time");
}

pub(super) fn numbers(frames: &[Value]) -> Vec<u64> {
    frames
        .iter()
        .filter_map(|frame| frame["seq"].as_u64())
        .collect()
}

pub(super) fn notice(message: &str) -> Event {
    Event::Run(RunEvent::Notice {
        message: message.into(),
    })
}

fn plan(run: &RunId) -> RunPlan {
    RunPlan {
        submodules: Vec::new(),
        run: run.clone(),
        task_id: TaskId::parse("task-001").unwrap(),
        title: "Foo".into(),
        task_file: "/t/ralph_task.md".into(),
        contract: Digest::compute(b"contract"),
        repo: "/t".into(),
        base_branch: "main".into(),
        base: CommitId::parse(&"a".repeat(40)).unwrap(),
        branch: "ralph/task-001/foo".into(),
        engine: EngineKind::Actions,
        sandbox: "local".into(),
        isolation: Isolation::None,
        local: None,
        container: None,
        network: None,
        agent: None,
        model: "scripted:x".into(),
        model_key: None,
        scm: "local".into(),
        scm_credential: None,
        delivery: Delivery::PullRequest,
        issue: None,
        limits: BudgetLimits::default(),
        setup: None,
        test_command: "true".into(),
        checkboxes: 2,
        mode: ralph_core::task::RunMode::Autonomous,
        settings: None,
    }
}

/// Limits that are reached at once.
pub(super) fn small_limits() -> StreamLimits {
    StreamLimits {
        lag_bytes: 64 << 10,
        lag_events: 100,
        grace: Duration::from_millis(200),
        ping: Duration::from_millis(100),
        check: Duration::from_millis(20),
        closing: PATIENCE,
        clients: 100,
    }
}
