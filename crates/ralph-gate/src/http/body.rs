//! Bodies that count what flows through them.

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

/// What may go wrong in a body.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// The body of everything that the gate sends.
pub(crate) type GateBody = UnsyncBoxBody<Bytes, BoxError>;

/// How much of a request is read after it was refused, in bytes.
const MAX_DRAINED_BYTES: usize = 1024 * 1024;
/// For how long.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns a body that is there at once.
pub(crate) fn full_body(bytes: impl Into<Bytes>) -> GateBody {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// Returns the body of a request on its way out.
pub(crate) fn counted_request_body(inner: Incoming, traffic: Arc<Traffic>) -> GateBody {
    CountedRequestBody { inner, traffic }.boxed_unsync()
}

/// Reads the rest of a request that is refused, if it is short and comes soon: a connection that is
/// closed while bytes arrive takes the refusal away from whoever sends them.
pub(crate) async fn drain_request(request: Request<Incoming>) {
    // Who expects to be told to go on has not sent anything.
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

/// The body of an answer on its way in; its end closes the record.
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
