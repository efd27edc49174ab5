//! Bodies that count their bytes.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::Request;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::header::EXPECT;
use tokio::time::timeout;

use crate::audit::{OpenRecord, Traffic};

/// The error type of bodies.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// The body of all messages that the gate sends.
pub(crate) type GateBody = UnsyncBoxBody<Bytes, BoxError>;

/// The number of bytes read from a request after it was refused.
const MAX_DRAINED_BYTES: usize = 1024 * 1024;
/// The time limit for draining a refused request.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns a fully buffered body.
pub(crate) fn full_body(bytes: impl Into<Bytes>) -> GateBody {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// Returns a request body that counts sent bytes.
pub(crate) fn counted_request_body(inner: Incoming, traffic: Arc<Traffic>) -> GateBody {
    CountedRequestBody { inner, traffic }.boxed_unsync()
}

/// Reads the rest of a refused request if it is short and arrives soon. Closing a connection with
/// unread bytes can reset it before the client reads the refusal.
pub(crate) async fn drain_request(request: Request<Incoming>) {
    // A client that waits for `100 Continue` has not sent a body.
    if request.headers().contains_key(EXPECT) {
        return;
    }
    let mut rest = Limited::new(request.into_body(), MAX_DRAINED_BYTES);
    let read = async { while let Some(Ok(_)) = rest.frame().await {} };
    if timeout(DRAIN_TIMEOUT, read).await.is_err() {
        tracing::debug!("the rest of a refused request did not arrive in time");
    }
}

struct CountedRequestBody {
    inner: Incoming,
    traffic: Arc<Traffic>,
}

impl hyper::body::Body for CountedRequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.inner).poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            this.traffic
                .add_sent(frame.data_ref().map_or(0, Bytes::len));
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// A response body that counts received bytes and closes the record at its end.
pub(super) struct CountedResponseBody {
    pub(super) inner: Incoming,
    pub(super) traffic: Arc<Traffic>,
    pub(super) record: Option<OpenRecord>,
}

impl hyper::body::Body for CountedResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.inner).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => this
                .traffic
                .add_received(frame.data_ref().map_or(0, Bytes::len)),
            Some(Err(_)) | None => drop(this.record.take()),
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
