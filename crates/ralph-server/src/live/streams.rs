//! Opens streams, and owns the tasks that serve them.

use std::collections::HashMap;
use std::fmt;
use std::future::pending;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use ralph_app::App;
use ralph_core::id::RunId;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::connection::ClientConnection;
use super::feed::{FeedReader, FeedStart, FeedTail};
use super::handshake::{self, AcceptedHandshake};
use super::limits::StreamLimits;
use super::run::{Growth, RunReader, RunStreamStart, RunTail};
use super::source::{CloseReason, FrameSource};
use super::wire::CloseCode;
use crate::index::RunIndex;
use crate::problem::Problem;

/// The interval at which growing files are polled.
const BUSY_INTERVAL: Duration = Duration::from_millis(25);
/// The interval for files that do not grow.
const QUIET_INTERVAL: Duration = Duration::from_millis(150);
/// The number of polls without growth after which a file is quiet.
const QUIET_POLLS: u32 = 40;
/// The number of polls without growth after which encoded frames are forgotten.
const FORGET_POLLS: u32 = 100;
/// How long the feed may have no new events until its encoded frames are forgotten.
const FEED_QUIET: Duration = Duration::from_secs(5);
/// How long the feed waits for an index that cannot be read.
const FEED_RETRY: Duration = Duration::from_millis(500);
/// The time for a refused client to accept the reason.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(2);

/// The streams of a server; clones share them.
#[derive(Debug, Clone)]
pub(crate) struct LiveStreams {
    shared: Arc<StreamsState>,
}

struct StreamsState {
    app: Arc<App>,
    index: RunIndex,
    limits: StreamLimits,
    tails: Mutex<HashMap<RunId, Weak<RunTail>>>,
    feed: Mutex<Weak<FeedTail>>,
    tasks: Mutex<JoinSet<()>>,
    stop: watch::Sender<bool>,
    clients: AtomicUsize,
    too_slow: AtomicU64,
}

impl LiveStreams {
    pub(crate) fn new(app: Arc<App>, index: RunIndex, limits: StreamLimits) -> Self {
        Self {
            shared: Arc::new(StreamsState {
                app,
                index,
                limits,
                tails: Mutex::default(),
                feed: Mutex::default(),
                tasks: Mutex::default(),
                stop: watch::Sender::new(false),
                clients: AtomicUsize::new(0),
                too_slow: AtomicU64::new(0),
            }),
        }
    }

    /// Answers a request for the stream of a run. The stream ends with `signed_out`.
    pub(crate) fn serve_run(
        &self,
        request: Request,
        run: String,
        start: RunStreamStart,
        signed_out: impl Future<Output = ()> + Send + 'static,
    ) -> Response {
        let streams = self.clone();
        let open = async move { streams.open_run(&run, start).await };
        self.serve(request, open, signed_out)
    }

    /// Answers a request for the stream of all runs. The stream ends with `signed_out`.
    pub(crate) fn serve_feed(
        &self,
        request: Request,
        start: FeedStart,
        signed_out: impl Future<Output = ()> + Send + 'static,
    ) -> Response {
        let streams = self.clone();
        let open = async move { Ok(FeedReader::new(streams.feed_tail(), start)) };
        self.serve(request, open, signed_out)
    }

    /// Answers a request for a stream with a close code: browsers cannot read the status of a refused
    /// handshake.
    pub(crate) fn refuse(
        &self,
        request: Request,
        code: CloseCode,
        reason: &'static str,
    ) -> Response {
        let refused = async move { Err::<RunReader, _>((code, reason)) };
        self.serve(request, refused, pending())
    }

    /// Returns the number of clients.
    pub(crate) fn clients(&self) -> usize {
        self.shared.clients.load(Ordering::Relaxed)
    }

    /// Returns the number of clients that were too slow since the start.
    pub(crate) fn too_slow(&self) -> u64 {
        self.shared.too_slow.load(Ordering::Relaxed)
    }

    /// Closes all streams and waits until their clients know.
    pub(crate) async fn close(&self) {
        self.shared.stop.send_replace(true);
        let mut tasks = std::mem::take(&mut *lock(&self.shared.tasks));
        let ended = async { while tasks.join_next().await.is_some() {} };
        if timeout(self.shared.limits.closing + Duration::from_secs(1), ended)
            .await
            .is_err()
        {
            tracing::warn!("some clients did not accept the end of their streams");
        }
    }

    /// Ends all streams without a word to their clients.
    #[cfg(test)]
    pub(super) fn abort(&self) {
        lock(&self.shared.tasks).abort_all();
    }

    fn serve<S: FrameSource>(
        &self,
        mut request: Request,
        open: impl Future<Output = Result<S, CloseReason>> + Send + 'static,
        signed_out: impl Future<Output = ()> + Send + 'static,
    ) -> Response {
        let handshake = match handshake::accept(&mut request) {
            Ok(handshake) => handshake,
            Err(response) => return response,
        };
        let Some(place) = ClientPlace::take(&self.shared) else {
            let detail = format!(
                "there are already {} stream clients",
                self.shared.limits.clients
            );
            let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too-many-streams", detail);
            return problem.with_hint("close other streams").into_response();
        };
        let AcceptedHandshake {
            response,
            connection,
        } = handshake;
        self.spawn(async move {
            let io = match connection.await {
                Ok(upgraded) => TokioIo::new(upgraded),
                Err(error) => {
                    tracing::debug!(%error, "a stream client left during the handshake");
                    return;
                }
            };
            place.streams.serve_client(io, open.await, signed_out).await;
        });
        response
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.shared.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    async fn open_run(&self, run: &str, start: RunStreamStart) -> Result<RunReader, CloseReason> {
        let unknown = (CloseCode::NoSuchRun, "there is no such run");
        let run = RunId::parse(run).ok_or(unknown)?;
        let reader = match self.tail(&run).await {
            Ok(tail) => tokio::task::spawn_blocking(move || RunReader::open(tail, start))
                .await
                .unwrap_or_else(|error| Err(io::Error::other(error))),
            Err(error) => Err(error),
        };
        reader.map_err(|error| {
            if error.kind() == io::ErrorKind::NotFound {
                return unknown;
            }
            tracing::warn!(%run, %error, "cannot open the stream of a run");
            (
                CloseCode::Failed,
                "the run cannot be read: see the server's log",
            )
        })
    }

    /// Returns the tail of a run, which all its clients share.
    async fn tail(&self, run: &RunId) -> io::Result<Arc<RunTail>> {
        if let Some(tail) = self.known_tail(run) {
            return Ok(tail);
        }
        let (streams, id) = (self.clone(), run.clone());
        let opened = tokio::task::spawn_blocking(move || {
            let state = streams.shared.app.state_dir().map_err(io::Error::other)?;
            let redactor = streams.shared.app.redactor().clone();
            RunTail::open(state.run(&id), id, redactor)
        });
        let opened = Arc::new(opened.await.map_err(io::Error::other)??);
        // Another client may have opened it in the meantime.
        if let Some(tail) = self.known_tail(run) {
            return Ok(tail);
        }
        lock(&self.shared.tails).insert(run.clone(), Arc::downgrade(&opened));
        self.spawn(follow(
            Arc::downgrade(&opened),
            self.shared.stop.subscribe(),
        ));
        Ok(opened)
    }

    /// Returns the tail of the feed, which all its clients share.
    fn feed_tail(&self) -> Arc<FeedTail> {
        let mut known = lock(&self.shared.feed);
        if let Some(tail) = known.upgrade() {
            return tail;
        }
        let redactor = self.shared.app.redactor();
        let tail = Arc::new(FeedTail::new(self.shared.index.clone(), redactor));
        *known = Arc::downgrade(&tail);
        drop(known);
        let follow = follow_feed(Arc::downgrade(&tail), self.shared.stop.subscribe());
        self.spawn(follow);
        tail
    }

    fn known_tail(&self, run: &RunId) -> Option<Arc<RunTail>> {
        let mut tails = lock(&self.shared.tails);
        tails.retain(|_, tail| tail.strong_count() > 0);
        let tail = tails.get(run).and_then(Weak::upgrade)?;
        tail.ended().is_none().then_some(tail)
    }
}

/// Follows the files of a run until it has no more readers.
async fn follow(tail: Weak<RunTail>, mut stop: watch::Receiver<bool>) {
    let mut quiet = 0;
    while let Some(tail) = tail.upgrade() {
        let polled = tail.clone();
        let polled = tokio::task::spawn_blocking(move || polled.poll()).await;
        match polled.map_err(io::Error::other).and_then(|polled| polled) {
            Ok(Growth::Some) => quiet = 0,
            Ok(Growth::None) => quiet += 1,
            Err(error) => {
                tracing::warn!(%error, "cannot follow the files of a run");
                tail.end(
                    CloseCode::Failed,
                    "the run cannot be read: see the server's log",
                );
            }
        }
        if tail.ended().is_some() {
            return;
        }
        if quiet == FORGET_POLLS {
            tail.forget();
        }
        let interval = if quiet < QUIET_POLLS {
            BUSY_INTERVAL
        } else {
            QUIET_INTERVAL
        };
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            () = sleep(interval) => {}
        }
    }
}

/// Follows the feed until it has no more readers.
async fn follow_feed(tail: Weak<FeedTail>, mut stop: watch::Receiver<bool>) {
    let Some(mut head) = tail.upgrade().map(|tail| tail.index_head()) else {
        return;
    };
    while let Some(tail) = tail.upgrade() {
        head.mark_unchanged();
        let retry = match tail.follow().await {
            Ok(()) => None,
            Err(error) => {
                tracing::debug!(%error, "cannot read the feed of the index");
                Some(sleep(FEED_RETRY))
            }
        };
        let retry = async {
            match retry {
                Some(retry) => retry.await,
                None => pending().await,
            }
        };
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            // The sender lives as long as the index, which the tail shares.
            _ = head.changed() => {}
            () = retry => {}
            () = sleep(FEED_QUIET) => tail.forget(),
        }
    }
}

/// One of the possible clients.
struct ClientPlace {
    streams: Arc<StreamsState>,
}

impl ClientPlace {
    fn take(streams: &Arc<StreamsState>) -> Option<Self> {
        let place = Self {
            streams: streams.clone(),
        };
        let before = streams.clients.fetch_add(1, Ordering::Relaxed);
        (before < streams.limits.clients).then_some(place)
    }
}

impl Drop for ClientPlace {
    fn drop(&mut self) {
        self.streams.clients.fetch_sub(1, Ordering::Relaxed);
    }
}

impl StreamsState {
    async fn serve_client<S: FrameSource>(
        &self,
        io: TokioIo<Upgraded>,
        source: Result<S, CloseReason>,
        signed_out: impl Future<Output = ()> + Send,
    ) {
        let mut connection = ClientConnection::new(io);
        let mut stop = self.stop.subscribe();
        let ends = async {
            tokio::select! {
                // A dropped sender stops the server, too.
                _ = stop.wait_for(|stop| *stop) => (CloseCode::GoingAway, "the server stops"),
                () = signed_out => (CloseCode::NotSignedIn, "the session ended"),
            }
        };
        let (ended, closing) = match source {
            Ok(source) => {
                let ended = connection.run(source, &self.limits, ends).await;
                (ended, self.limits.closing)
            }
            Err(refused) => (Ok(refused), self.limits.closing.min(REFUSAL_TIMEOUT)),
        };
        match ended {
            Ok(reason) => {
                if reason.0 == CloseCode::TooSlow {
                    self.too_slow.fetch_add(1, Ordering::Relaxed);
                }
                connection.close(reason, closing).await;
            }
            Err(error) => tracing::debug!(%error, "a stream client left"),
        }
    }
}

impl fmt::Debug for StreamsState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamsState")
            .field("limits", &self.limits)
            .field("clients", &self.clients)
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
