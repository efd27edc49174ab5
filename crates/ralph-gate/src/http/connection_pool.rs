//! Connections to a provider, each driven by the one who waits for its answer.
//!
//! An answer in many small events is on its way no longer than it takes to read and to write it: no
//! other task has its turn in between. That works for requests that are there as a whole; what is
//! sent while it arrives goes over `pool`.

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

/// Where a connection leads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct HttpOrigin {
    pub(crate) scheme: Scheme,
    pub(crate) authority: Authority,
}

/// Sends whole requests. Its connections are one sandbox's own.
pub(crate) struct ConnectionPool {
    connector: GateHttpConnector,
    idle: Arc<IdleConnections>,
}

/// Connections that are open and wait for the next request.
struct IdleConnections {
    state: Mutex<IdleConnectionsState>,
    /// How many there may be for one place and thread.
    max_per_origin: usize,
}

#[derive(Default)]
struct IdleConnectionsState {
    /// Those that were used last are at the end. Each thread has its own: a connection moves with the
    /// runtime that has opened it, and another thread's may be another one.
    connections: HashMap<(ThreadId, HttpOrigin), VecDeque<(Instant, PooledConnection)>>,
    /// Whether somebody will close those that are not used.
    has_reaper: bool,
}

/// One connection.
struct PooledConnection {
    sender: http1::SendRequest<GateBody>,
    /// It moves only when it is polled; none if it has ended.
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

    /// Sends a request, whose address is a path alone, and returns its answer.
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
                // It was closed while nobody used it, and nothing of the request is gone.
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
    /// Takes a connection that is still open.
    fn take(&self, place: &HttpOrigin) -> Option<PooledConnection> {
        let key = (thread::current().id(), place.clone());
        loop {
            let (_, mut line) = self.lock_state().connections.get_mut(&key)?.pop_back()?;
            if line.is_reusable() {
                return Some(line);
            }
        }
    }

    /// Keeps a connection for the next request.
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
        // Closing a connection may take a while.
        drop(oldest);
        if !is_watched {
            tokio::spawn(reap_idle_connections(Arc::downgrade(self)));
        }
    }

    /// Takes out those that nobody has used for a while; tells whether others are left.
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

/// Closes connections that nobody uses, until there are none or the gate is gone.
async fn reap_idle_connections(free: Weak<IdleConnections>) {
    /// How long one that is not used stays longer than it should, at most.
    const REAP_INTERVAL: Duration = Duration::from_secs(10);
    loop {
        tokio::time::sleep(REAP_INTERVAL).await;
        if !free.upgrade().is_some_and(|free| free.close_unused()) {
            return;
        }
    }
}

/// A request that was not answered.
struct UpstreamSendError {
    error: hyper::Error,
    /// The request, if nothing of it was sent.
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

    /// Tells whether it can take a request.
    fn is_reusable(&mut self) -> bool {
        // Nobody waits for it, so nobody is woken.
        poll_connection(
            &mut self.connection,
            &mut Context::from_waker(Waker::noop()),
        );
        self.connection.is_some() && self.sender.is_ready()
    }
}

/// Moves what can be moved; a connection that has ended is dropped, which tells those who wait for it.
fn poll_connection(connection: &mut Option<Box<Http1Connection>>, cx: &mut Context<'_>) {
    if let Some(open) = connection
        && Pin::new(open).poll(cx).is_ready()
    {
        *connection = None;
    }
}

/// The body of an answer. Reading it moves its connection.
pub(crate) struct UpstreamBody {
    incoming: Incoming,
    connection: Option<CheckedOutConnection>,
}

/// A connection that is used.
struct CheckedOutConnection {
    connection: PooledConnection,
    origin: HttpOrigin,
    idle: Arc<IdleConnections>,
}

impl From<Incoming> for UpstreamBody {
    /// Takes a body whose connection moves by itself.
    fn from(incoming: Incoming) -> Self {
        let lent = None;
        Self {
            incoming,
            connection: lent,
        }
    }
}

impl UpstreamBody {
    /// Returns the next part of it.
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
