//! Connections to a provider, each driven by the task that waits for its response.
//!
//! A response with many small events is relayed without switching tasks between reading and
//! writing. This only works for fully buffered requests; streamed requests use `client`.

use std::collections::{HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::thread::{self, ThreadId};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body as _, Frame, Incoming};
use hyper::client::conn::http1;
use hyper::http::uri::{Authority, Scheme};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::time::Instant;

use super::body::{BoxError, GateBody};
use super::client::{GateHttpConnector, IDLE_TIMEOUT, UpstreamStream};
use super::coalescing_waker::CoalescingWaker;

/// The target of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct HttpOrigin {
    pub(crate) scheme: Scheme,
    pub(crate) authority: Authority,
}

/// Sends buffered requests. Its connections belong to one sandbox.
pub(crate) struct ConnectionPool {
    connector: GateHttpConnector,
    idle: Arc<IdleConnections>,
}

/// Open connections that wait for the next request.
struct IdleConnections {
    state: Mutex<IdleConnectionsState>,
    /// The limit per origin and thread.
    max_per_origin: usize,
}

#[derive(Default)]
struct IdleConnectionsState {
    /// The most recently used connections are at the end. Each thread has its own: a connection is
    /// driven by the runtime that opened it, and another thread may have another runtime.
    connections: HashMap<(ThreadId, HttpOrigin), VecDeque<(Instant, PooledConnection)>>,
    /// Whether a task is running that closes idle connections.
    has_reaper: bool,
}

struct PooledConnection {
    sender: http1::SendRequest<GateBody>,
    /// Makes progress only when polled; `None` once it has ended.
    connection: Option<Box<Http1Connection>>,
    waker: CoalescingWaker,
}

type Http1Connection = http1::Connection<TokioIo<UpstreamStream>, GateBody>;

impl ConnectionPool {
    pub(crate) fn new(connector: GateHttpConnector, most: usize) -> Self {
        let state = Mutex::default();
        Self {
            connector,
            idle: Arc::new(IdleConnections {
                state,
                max_per_origin: most,
            }),
        }
    }

    /// Sends a request in origin form and returns its response.
    pub(crate) async fn request(
        &self,
        place: &HttpOrigin,
        mut request: Request<GateBody>,
    ) -> Result<Response<UpstreamBody>, BoxError> {
        loop {
            let free = self.idle.take(place);
            let is_used = free.is_some();
            let mut line = match free {
                Some(line) => line,
                None => self.connect(place).await?,
            };
            let error = match line.send(request).await {
                Ok(response) => {
                    let lent = CheckedOutConnection {
                        connection: line,
                        origin: place.clone(),
                        idle: self.idle.clone(),
                    };
                    return Ok(response.map(|incoming| UpstreamBody {
                        incoming,
                        connection: Some(lent),
                    }));
                }
                Err(error) => error,
            };
            let (error, unsent) = (error.error, error.unsent);
            match unsent {
                // The idle connection was closed before any of the request was sent, so retry.
                Some(unsent) if is_used => request = unsent,
                Some(_) | None => return Err(error.into()),
            }
        }
    }

    async fn connect(&self, place: &HttpOrigin) -> Result<PooledConnection, BoxError> {
        let uri = Uri::builder()
            .scheme(place.scheme.clone())
            .authority(place.authority.clone())
            .path_and_query("/")
            .build()?;
        let io = self.connector.clone().connect(uri).await?;
        let (sender, connection) = http1::handshake(io).await?;
        Ok(PooledConnection {
            sender,
            connection: Some(Box::new(connection)),
            waker: CoalescingWaker::new(),
        })
    }
}

impl IdleConnections {
    /// Returns an idle connection that is still open.
    fn take(&self, place: &HttpOrigin) -> Option<PooledConnection> {
        let key = (thread::current().id(), place.clone());
        loop {
            let (_, mut line) = self.lock_state().connections.get_mut(&key)?.pop_back()?;
            if line.is_reusable() {
                return Some(line);
            }
        }
    }

    /// Returns a connection to the pool.
    fn put(self: &Arc<Self>, place: HttpOrigin, line: PooledConnection) {
        let key = (thread::current().id(), place);
        let mut state = self.lock_state();
        let now = Instant::now();
        let oldest = if let Some(lines) = state.connections.get_mut(&key) {
            lines.push_back((now, line));
            let is_full = lines.len() > self.max_per_origin;
            is_full.then(|| lines.pop_front())
        } else {
            let lines = VecDeque::from([(now, line)]);
            state.connections.insert(key, lines);
            None
        };
        let is_watched = std::mem::replace(&mut state.has_reaper, true);
        drop(state);
        // Closing a connection can take a while, so it happens outside the lock.
        drop(oldest);
        if !is_watched {
            tokio::spawn(reap_idle_connections(Arc::downgrade(self)));
        }
    }

    /// Closes connections that are idle for too long; returns whether others are left.
    fn close_unused(&self) -> bool {
        let mut unused = Vec::new();
        let mut state = self.lock_state();
        let now = Instant::now();
        for lines in state.connections.values_mut() {
            while lines
                .front()
                .is_some_and(|(since, _)| *since + IDLE_TIMEOUT <= now)
            {
                unused.extend(lines.pop_front());
            }
        }
        state.connections.retain(|_, lines| !lines.is_empty());
        state.has_reaper = !state.connections.is_empty();
        state.has_reaper
    }

    fn lock_state(&self) -> MutexGuard<'_, IdleConnectionsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes idle connections until none are left or the gate is dropped.
async fn reap_idle_connections(free: Weak<IdleConnections>) {
    /// The maximum delay of closing an idle connection.
    const REAP_INTERVAL: Duration = Duration::from_secs(10);
    loop {
        tokio::time::sleep(REAP_INTERVAL).await;
        if !free.upgrade().is_some_and(|free| free.close_unused()) {
            return;
        }
    }
}

/// A request without a response.
struct UpstreamSendError {
    error: hyper::Error,
    /// The request, if none of it was sent.
    unsent: Option<Request<GateBody>>,
}

impl PooledConnection {
    async fn send(
        &mut self,
        request: Request<GateBody>,
    ) -> Result<Response<Incoming>, UpstreamSendError> {
        let Self {
            sender,
            connection,
            waker: nudge,
        } = self;
        let mut answer = pin!(sender.try_send_request(request));
        let answered = poll_fn(|cx| {
            nudge.poll(cx, |cx| {
                poll_connection(connection, cx);
                answer.as_mut().poll(cx)
            })
        });
        answered.await.map_err(|mut error| UpstreamSendError {
            unsent: error.take_message(),
            error: error.into_error(),
        })
    }

    /// Returns whether the connection can send another request.
    fn is_reusable(&mut self) -> bool {
        // No task waits for the connection, so none needs to be woken.
        poll_connection(
            &mut self.connection,
            &mut Context::from_waker(Waker::noop()),
        );
        self.connection.is_some() && self.sender.is_ready()
    }
}

/// Polls a connection and drops it if it has ended, which notifies its waiters.
fn poll_connection(connection: &mut Option<Box<Http1Connection>>, cx: &mut Context<'_>) {
    if let Some(open) = connection
        && Pin::new(open).poll(cx).is_ready()
    {
        *connection = None;
    }
}

/// A response body. Reading it drives the connection.
pub(crate) struct UpstreamBody {
    incoming: Incoming,
    connection: Option<CheckedOutConnection>,
}

/// A connection in use.
struct CheckedOutConnection {
    connection: PooledConnection,
    origin: HttpOrigin,
    idle: Arc<IdleConnections>,
}

impl From<Incoming> for UpstreamBody {
    /// Wraps a body whose connection is driven by another task.
    fn from(incoming: Incoming) -> Self {
        let lent = None;
        Self {
            incoming,
            connection: lent,
        }
    }
}

impl UpstreamBody {
    /// Polls the next frame.
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Self {
            incoming,
            connection: lent,
        } = self;
        let mut incoming = Pin::new(incoming);
        let frame = match lent.as_mut().map(|lent| &mut lent.connection) {
            Some(line) => line.waker.poll(cx, |cx| {
                let frame = incoming.as_mut().poll_frame(cx);
                if frame.is_ready() {
                    return frame;
                }
                poll_connection(&mut line.connection, cx);
                incoming.as_mut().poll_frame(cx)
            }),
            None => incoming.poll_frame(cx),
        };
        if matches!(frame, Poll::Ready(None | Some(Err(_))))
            && let Some(mut lent) = self.connection.take()
            && lent.connection.is_reusable()
        {
            lent.idle.put(lent.origin, lent.connection);
        }
        frame
    }
}
