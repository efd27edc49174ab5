//! Reads responses whose client has disconnected: the provider bills them, so the gate keeps
//! reading within limits to learn their cost. If a limit is reached, the reservation is charged.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::Response;
use hyper::body::Incoming;
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::send::AdmittedCall;
use crate::GateLimits;
use crate::http::{BoxError, find_dial_error};
use crate::meter::{CallControl, ResponseMeter};

/// The limits for background reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct BackgroundReader {
    timeout: Duration,
    max_bytes: usize,
}

impl BackgroundReader {
    pub(super) fn new(limits: &GateLimits) -> Self {
        Self {
            timeout: limits.background_read_timeout,
            max_bytes: limits.background_read_bytes,
        }
    }

    /// Reads the rest of a response in the background. The call keeps its reservation and counts as
    /// a concurrent call.
    pub(super) fn spawn(self, upstream: Incoming, response_meter: ResponseMeter) {
        let reading = self.read_to_end(upstream, response_meter);
        // Without a runtime the process is exiting, and the reservation is charged.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                if timeout(self.timeout, reading).await.is_err() {
                    tracing::debug!("the rest of a response was not read in time");
                }
            });
        }
    }

    async fn read_to_end(self, mut upstream: Incoming, mut response_meter: ResponseMeter) {
        let Some(meter) = response_meter.call().map(|call| call.meter().clone()) else {
            return;
        };
        let rest = async {
            let mut bytes = 0;
            while let Some(Ok(frame)) = upstream.frame().await {
                let Ok(chunk) = frame.into_data() else {
                    continue;
                };
                bytes += chunk.len();
                if bytes > self.max_bytes || response_meter.feed(&chunk) == CallControl::Cut {
                    return;
                }
            }
        };
        tokio::select! {
            () = rest => {}
            () = meter.background_reads_stopped() => {}
        }
    }
}

type PendingUpstreamResponse =
    Pin<Box<dyn Future<Output = Result<Response<Incoming>, BoxError>> + Send>>;

/// A request sent to a provider. If its client disconnects before the response starts, the response
/// is read in the background.
pub(super) struct UpstreamCall {
    response: Option<PendingUpstreamResponse>,
    admitted: Option<AdmittedCall>,
    background_reader: BackgroundReader,
}

impl UpstreamCall {
    pub(super) fn new(
        response: impl Future<Output = Result<Response<Incoming>, BoxError>> + Send + 'static,
        admitted: Option<AdmittedCall>,
        background_reader: BackgroundReader,
    ) -> Self {
        Self {
            response: Some(Box::pin(response)),
            admitted,
            background_reader,
        }
    }
}

impl Future for UpstreamCall {
    type Output = (Result<Response<Incoming>, BoxError>, Option<AdmittedCall>);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let Some(response) = &mut this.response else {
            return Poll::Pending;
        };
        match response.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(result) => {
                this.response = None;
                Poll::Ready((result, this.admitted.take()))
            }
        }
    }
}

impl Drop for UpstreamCall {
    fn drop(&mut self) {
        let (Some(response), Some(admitted)) = (self.response.take(), self.admitted.take()) else {
            return;
        };
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let background_reader = self.background_reader;
        let meter = admitted.call.meter().clone();
        let reading = async move {
            match response.await {
                Ok(response) if response.status().is_success() => {
                    let response_meter =
                        ResponseMeter::new(admitted.wire, admitted.call, admitted.memory);
                    background_reader
                        .read_to_end(response.into_body(), response_meter)
                        .await;
                }
                Ok(_) => admitted.call.release(),
                Err(error) => {
                    if find_dial_error(&*error).is_some() {
                        admitted.call.release();
                    }
                }
            }
        };
        runtime.spawn(async move {
            tokio::select! {
                _ = timeout(background_reader.timeout, reading) => {}
                () = meter.background_reads_stopped() => {}
            }
        });
    }
}
