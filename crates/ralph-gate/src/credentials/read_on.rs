//! Answers that no client waits for any more: the provider bills them, so they are read on to learn what
//! they cost, within bounds. Without that, the reservation is charged.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Response;
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::send::Paid;
use crate::Limits;
use crate::http::{Answer, BoxError, dial_error};
use crate::meter::{Gauge, Step};

/// How far answers are read on.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadOn {
    time: Duration,
    bytes: usize,
}

impl ReadOn {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            time: limits.read_on_time,
            bytes: limits.read_on_bytes,
        }
    }

    /// Reads the rest of an answer in the background. Its call keeps its reservation, and its place among
    /// the calls under way.
    pub(super) fn spawn(self, upstream: Answer, gauge: Gauge) {
        let reading = self.read(upstream, gauge);
        // Without a runtime, the process ends: the reservation is charged.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { timeout(self.time, reading).await.ok() });
        }
    }

    async fn read(self, mut upstream: Answer, mut gauge: Gauge) {
        let Some(meter) = gauge.call().map(|call| call.meter().clone()) else {
            return;
        };
        let rest = async {
            let mut bytes = 0;
            while let Some(Ok(frame)) = poll_fn(|cx| upstream.poll_frame(cx)).await {
                let Ok(chunk) = frame.into_data() else {
                    continue;
                };
                bytes += chunk.len();
                if bytes > self.bytes || gauge.feed(&chunk) == Step::Cut {
                    return;
                }
            }
        };
        tokio::select! {
            () = rest => {}
            () = meter.until_hurried() => {}
        }
    }
}

type Answering = Pin<Box<dyn Future<Output = Result<Response<Answer>, BoxError>> + Send>>;

/// A request that was sent to a provider. If its client leaves before the answer begins, the answer is
/// awaited and read in the background.
pub(super) struct Underway {
    answering: Option<Answering>,
    paid: Option<Paid>,
    read_on: ReadOn,
}

impl Underway {
    pub(super) fn new(
        answering: impl Future<Output = Result<Response<Answer>, BoxError>> + Send + 'static,
        paid: Option<Paid>,
        read_on: ReadOn,
    ) -> Self {
        Self {
            answering: Some(Box::pin(answering)),
            paid,
            read_on,
        }
    }
}

impl Future for Underway {
    type Output = (Result<Response<Answer>, BoxError>, Option<Paid>);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let Some(answering) = &mut this.answering else {
            return Poll::Pending;
        };
        match answering.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(answered) => {
                this.answering = None;
                Poll::Ready((answered, this.paid.take()))
            }
        }
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        let (Some(answering), Some(paid)) = (self.answering.take(), self.paid.take()) else {
            return;
        };
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let read_on = self.read_on;
        let meter = paid.call.meter().clone();
        let reading = async move {
            match answering.await {
                Ok(response) if response.status().is_success() => {
                    let gauge = Gauge::new(paid.wire, paid.call, paid.memory);
                    read_on.read(response.into_body(), gauge).await;
                }
                Ok(_) => paid.call.forgive(),
                Err(error) => {
                    if dial_error(&*error).is_some() {
                        paid.call.forgive();
                    }
                }
            }
        };
        runtime.spawn(async move {
            tokio::select! {
                _ = timeout(read_on.time, reading) => {}
                () = meter.until_hurried() => {}
            }
        });
    }
}
