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

use super::body::{Body, BoxError};
use super::nudge::Nudge;
use super::pool::{Connector, IDLE, Io};

/// Where a connection leads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) scheme: Scheme,
    pub(crate) authority: Authority,
}

/// Sends whole requests. Its connections are one sandbox's own.
pub(crate) struct Lines {
    connector: Connector,
    free: Arc<Free>,
}

/// Connections that are open and wait for the next request.
struct Free {
    state: Mutex<FreeState>,
    /// How many there may be for one place and thread.
    most: usize,
}

#[derive(Default)]
struct FreeState {
    /// Those that were used last are at the end. Each thread has its own: a connection moves with the
    /// runtime that has opened it, and another thread's may be another one.
    lines: HashMap<(ThreadId, Place), VecDeque<(Instant, Line)>>,
    /// Whether somebody will close those that are not used.
    is_watched: bool,
}

/// One connection.
struct Line {
    sender: http1::SendRequest<Body>,
    /// It moves only when it is polled; none if it has ended.
    connection: Option<Box<Connection>>,
    nudge: Nudge,
}

type Connection = http1::Connection<TokioIo<Io>, Body>;

impl Lines {
    pub(crate) fn new(connector: Connector, most: usize) -> Self {
        let state = Mutex::default();
        Self {
            connector,
            free: Arc::new(Free { state, most }),
        }
    }

    /// Sends a request, whose address is a path alone, and returns its answer.
    pub(crate) async fn request(
        &self,
        place: &Place,
        mut request: Request<Body>,
    ) -> Result<Response<Answer>, BoxError> {
        loop {
            let free = self.free.take(place);
            let is_used = free.is_some();
            let mut line = match free {
                Some(line) => line,
                None => self.connect(place).await?,
            };
            let error = match line.send(request).await {
                Ok(response) => {
                    let lent = Lent {
                        line,
                        place: place.clone(),
                        free: self.free.clone(),
                    };
                    return Ok(response.map(|incoming| Answer {
                        incoming,
                        lent: Some(lent),
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

    async fn connect(&self, place: &Place) -> Result<Line, BoxError> {
        let uri = Uri::builder()
            .scheme(place.scheme.clone())
            .authority(place.authority.clone())
            .path_and_query("/")
            .build()?;
        let io = self.connector.clone().connect(uri).await?;
        let (sender, connection) = http1::handshake(io).await?;
        Ok(Line {
            sender,
            connection: Some(Box::new(connection)),
            nudge: Nudge::new(),
        })
    }
}

impl Free {
    /// Takes a connection that is still open.
    fn take(&self, place: &Place) -> Option<Line> {
        let key = (thread::current().id(), place.clone());
        loop {
            let (_, mut line) = self.state().lines.get_mut(&key)?.pop_back()?;
            if line.is_free() {
                return Some(line);
            }
        }
    }

    /// Keeps a connection for the next request.
    fn put(self: &Arc<Self>, place: Place, line: Line) {
        let key = (thread::current().id(), place);
        let mut state = self.state();
        let now = Instant::now();
        let oldest = if let Some(lines) = state.lines.get_mut(&key) {
            lines.push_back((now, line));
            let is_full = lines.len() > self.most;
            is_full.then(|| lines.pop_front())
        } else {
            let lines = VecDeque::from([(now, line)]);
            state.lines.insert(key, lines);
            None
        };
        let is_watched = std::mem::replace(&mut state.is_watched, true);
        drop(state);
        // Closing a connection may take a while.
        drop(oldest);
        if !is_watched {
            tokio::spawn(watch(Arc::downgrade(self)));
        }
    }

    /// Takes out those that nobody has used for a while; tells whether others are left.
    fn close_unused(&self) -> bool {
        let mut unused = Vec::new();
        let mut state = self.state();
        let now = Instant::now();
        for lines in state.lines.values_mut() {
            while lines.front().is_some_and(|(since, _)| *since + IDLE <= now) {
                unused.extend(lines.pop_front());
            }
        }
        state.lines.retain(|_, lines| !lines.is_empty());
        state.is_watched = !state.lines.is_empty();
        state.is_watched
    }

    fn state(&self) -> MutexGuard<'_, FreeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes connections that nobody uses, until there are none or the gate is gone.
async fn watch(free: Weak<Free>) {
    /// How long one that is not used stays longer than it should, at most.
    const LATE: Duration = Duration::from_secs(10);
    loop {
        tokio::time::sleep(LATE).await;
        if !free.upgrade().is_some_and(|free| free.close_unused()) {
            return;
        }
    }
}

/// A request that was not answered.
struct SendError {
    error: hyper::Error,
    /// The request, if nothing of it was sent.
    unsent: Option<Request<Body>>,
}

impl Line {
    async fn send(&mut self, request: Request<Body>) -> Result<Response<Incoming>, SendError> {
        let Self {
            sender,
            connection,
            nudge,
        } = self;
        let mut answer = pin!(sender.try_send_request(request));
        let answered = poll_fn(|cx| {
            nudge.poll(cx, |cx| {
                drive(connection, cx);
                answer.as_mut().poll(cx)
            })
        });
        answered.await.map_err(|mut error| SendError {
            unsent: error.take_message(),
            error: error.into_error(),
        })
    }

    /// Tells whether it can take a request.
    fn is_free(&mut self) -> bool {
        // Nobody waits for it, so nobody is woken.
        drive(
            &mut self.connection,
            &mut Context::from_waker(Waker::noop()),
        );
        self.connection.is_some() && self.sender.is_ready()
    }
}

/// Moves what can be moved; a connection that has ended is dropped, which tells those who wait for it.
fn drive(connection: &mut Option<Box<Connection>>, cx: &mut Context<'_>) {
    if let Some(open) = connection
        && Pin::new(open).poll(cx).is_ready()
    {
        *connection = None;
    }
}

/// The body of an answer. Reading it moves its connection.
pub(crate) struct Answer {
    incoming: Incoming,
    lent: Option<Lent>,
}

/// A connection that is used.
struct Lent {
    line: Line,
    place: Place,
    free: Arc<Free>,
}

impl From<Incoming> for Answer {
    /// Takes a body whose connection moves by itself.
    fn from(incoming: Incoming) -> Self {
        let lent = None;
        Self { incoming, lent }
    }
}

impl Answer {
    /// Returns the next part of it.
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Self { incoming, lent } = self;
        let mut incoming = Pin::new(incoming);
        let frame = match lent.as_mut().map(|lent| &mut lent.line) {
            Some(line) => line.nudge.poll(cx, |cx| {
                let frame = incoming.as_mut().poll_frame(cx);
                if frame.is_ready() {
                    return frame;
                }
                drive(&mut line.connection, cx);
                incoming.as_mut().poll_frame(cx)
            }),
            None => incoming.poll_frame(cx),
        };
        if matches!(frame, Poll::Ready(None | Some(Err(_))))
            && let Some(mut lent) = self.lent.take()
            && lent.line.is_free()
        {
            lent.free.put(lent.place, lent.line);
        }
        frame
    }
}
