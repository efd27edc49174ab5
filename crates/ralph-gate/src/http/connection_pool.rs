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
    pub(crate) fn new(connector: GateHttpConnector, max_per_origin: usize) -> Self {
        let state = Mutex::default();
        Self {
            connector,
            idle: Arc::new(IdleConnections {
                state,
                max_per_origin,
            }),
        }
    }

    /// Sends a request in origin form and returns its response.
    pub(crate) async fn request(
        &self,
        origin: &HttpOrigin,
        mut request: Request<GateBody>,
    ) -> Result<Response<UpstreamBody>, BoxError> {
        loop {
            let idle = self.idle.take(origin);
            let is_reused = idle.is_some();
            let mut connection = match idle {
                Some(connection) => connection,
                None => self.connect(origin).await?,
            };
            let error = match connection.send(request).await {
                Ok(response) => {
                    let checked_out = CheckedOutConnection {
                        connection,
                        origin: origin.clone(),
                        idle: self.idle.clone(),
                    };
                    return Ok(response.map(|incoming| UpstreamBody {
                        incoming,
                        connection: Some(checked_out),
                    }));
                }
                Err(error) => error,
            };
            let (error, unsent) = (error.error, error.unsent);
            match unsent {
                // The idle connection was closed before any of the request was sent, so retry.
                Some(unsent) if is_reused => request = unsent,
                Some(_) | None => return Err(error.into()),
            }
        }
    }

    async fn connect(&self, origin: &HttpOrigin) -> Result<PooledConnection, BoxError> {
        let uri = Uri::builder()
            .scheme(origin.scheme.clone())
            .authority(origin.authority.clone())
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
    fn take(&self, origin: &HttpOrigin) -> Option<PooledConnection> {
        let key = (thread::current().id(), origin.clone());
        loop {
            let (_, mut connection) = self.lock_state().connections.get_mut(&key)?.pop_back()?;
            if connection.is_reusable() {
                return Some(connection);
            }
        }
    }

    /// Returns a connection to the pool and closes the oldest one if there are too many.
    fn put(self: &Arc<Self>, origin: HttpOrigin, connection: PooledConnection) {
        let key = (thread::current().id(), origin);
        let mut state = self.lock_state();
        let now = Instant::now();
        let oldest = if let Some(connections) = state.connections.get_mut(&key) {
            connections.push_back((now, connection));
            let is_full = connections.len() > self.max_per_origin;
            is_full.then(|| connections.pop_front())
        } else {
            let connections = VecDeque::from([(now, connection)]);
            state.connections.insert(key, connections);
            None
        };
        let had_reaper = std::mem::replace(&mut state.has_reaper, true);
        drop(state);
        // Closing a connection can take a while, so it happens outside the lock.
        drop(oldest);
        if !had_reaper {
            tokio::spawn(reap_idle_connections(Arc::downgrade(self)));
        }
    }

    /// Closes connections that are idle for too long; returns whether others are left.
    fn close_unused(&self) -> bool {
        // Declared before the lock, so that the connections are closed after its release.
        let mut unused = Vec::new();
        let mut state = self.lock_state();
        let now = Instant::now();
        for connections in state.connections.values_mut() {
            while connections
                .front()
                .is_some_and(|(since, _)| *since + IDLE_TIMEOUT <= now)
            {
                unused.extend(connections.pop_front());
            }
        }
        state
            .connections
            .retain(|_, connections| !connections.is_empty());
        state.has_reaper = !state.connections.is_empty();
        state.has_reaper
    }

    fn lock_state(&self) -> MutexGuard<'_, IdleConnectionsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes idle connections until none are left or the gate is dropped.
async fn reap_idle_connections(idle: Weak<IdleConnections>) {
    /// The maximum delay of closing an idle connection.
    const REAP_INTERVAL: Duration = Duration::from_secs(10);
    loop {
        tokio::time::sleep(REAP_INTERVAL).await;
        if !idle.upgrade().is_some_and(|idle| idle.close_unused()) {
            return;
        }
    }
}

/// The error of a request that got no response.
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
            waker,
        } = self;
        let mut response = pin!(sender.try_send_request(request));
        let sent = poll_fn(|cx| {
            waker.poll(cx, |cx| {
                poll_connection(connection, cx);
                response.as_mut().poll(cx)
            })
        });
        sent.await.map_err(|mut error| UpstreamSendError {
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
        Self {
            incoming,
            connection: None,
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
            connection,
        } = self;
        let mut incoming = Pin::new(incoming);
        let frame = match connection.as_mut().map(|it| &mut it.connection) {
            Some(pooled) => pooled.waker.poll(cx, |cx| {
                let frame = incoming.as_mut().poll_frame(cx);
                if frame.is_ready() {
                    return frame;
                }
                poll_connection(&mut pooled.connection, cx);
                incoming.as_mut().poll_frame(cx)
            }),
            None => incoming.poll_frame(cx),
        };
        if matches!(frame, Poll::Ready(None | Some(Err(_))))
            && let Some(mut checked_out) = self.connection.take()
            && checked_out.connection.is_reusable()
        {
            checked_out
                .idle
                .put(checked_out.origin, checked_out.connection);
        }
        frame
    }
}
