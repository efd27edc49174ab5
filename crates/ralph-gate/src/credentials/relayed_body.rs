//! Relays a response body: meters it, redacts the credential and records it without delaying the
//! stream.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};
use ralph_core::net::{EgressDecider, EgressReason};
use ralph_core::secret::RedactStream;

use super::background_reader::BackgroundReader;
use super::refusal::CredentialRefusal;
use super::route::ErrorDialect;
use crate::audit::OpenRecord;
use crate::cassette::ExchangeRecorder;
use crate::http::BoxError;
use crate::meter::{CallControl, ResponseMeter};

/// The body of a relayed response.
pub(super) struct RelayedBody {
    /// `None` once the provider's response is read completely or cut off.
    pub(super) upstream: Option<Incoming>,
    pub(super) redact: Option<RedactStream>,
    pub(super) meter: Option<ResponseMeter>,
    pub(super) recorder: Option<ExchangeRecorder>,
    /// The format of the error event that reports an exhausted budget.
    pub(super) dialect: ErrorDialect,
    pub(super) record: Option<OpenRecord>,
    pub(super) state: RelayState,
    pub(super) background_reader: BackgroundReader,
}

/// The progress of a relayed response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RelayState {
    /// Chunks are being relayed.
    Open,
    /// The error event is queued and has to be flushed.
    SendingError,
    /// The body ends with an error, so that the client does not treat it as complete.
    Cut,
    Finished,
}

impl RelayedBody {
    /// Accepts a chunk from the provider and returns the bytes that can be forwarded now.
    fn relay_chunk(&mut self, chunk: &Bytes) -> Bytes {
        if let Some(record) = &self.record {
            record.add_received(chunk.len());
        }
        let control = self.meter.as_mut().map(|meter| meter.feed(chunk));
        if control == Some(CallControl::Cut) {
            self.state = RelayState::SendingError;
            self.settle();
            return budget_error_event(self.dialect);
        }
        let Some(redact) = &mut self.redact else {
            return Bytes::new();
        };
        let mut output = Vec::with_capacity(chunk.len());
        redact.push(chunk, &mut output);
        self.record_chunk(output)
    }

    /// Ends the response and returns the bytes that were held back.
    fn finish(&mut self) -> Bytes {
        self.state = RelayState::Finished;
        let mut output = Vec::new();
        if let Some(redact) = self.redact.take() {
            redact.finish(&mut output);
        }
        let output = self.record_chunk(output);
        if let Some(recorder) = self.recorder.take() {
            recorder.finish();
        }
        self.settle();
        output
    }

    fn record_chunk(&mut self, output: Vec<u8>) -> Bytes {
        if let Some(recorder) = &mut self.recorder {
            recorder.push(&output);
        }
        output.into()
    }

    /// Drops the upstream response, the meter and the audit record. This settles the call and writes
    /// the record.
    fn settle(&mut self) {
        drop(self.upstream.take());
        drop(self.meter.take());
        drop(self.record.take());
    }
}

impl Drop for RelayedBody {
    /// The provider bills the whole response even if the client disconnects, so the rest is read in
    /// the background to learn its cost.
    fn drop(&mut self) {
        if let (Some(upstream), Some(meter)) = (self.upstream.take(), self.meter.take()) {
            self.background_reader.spawn(upstream, meter);
        }
    }
}

/// Returns the event that reports a budget exhausted during the response.
fn budget_error_event(dialect: ErrorDialect) -> Bytes {
    let text = "the run's budget is spent — the response was cut off — stop here";
    let refusal =
        CredentialRefusal::new(402, EgressReason::BudgetSpent, EgressDecider::Budget, text);
    refusal.to_stream_event(dialect).into()
}

impl Body for RelayedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        loop {
            match this.state {
                RelayState::Open => {}
                RelayState::SendingError => {
                    this.state = RelayState::Cut;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                RelayState::Cut => {
                    this.state = RelayState::Finished;
                    return Poll::Ready(Some(Err("the budget is spent".into())));
                }
                RelayState::Finished => return Poll::Ready(None),
            }
            let Some(upstream) = &mut this.upstream else {
                return Poll::Ready(None);
            };
            let output = match Pin::new(upstream).poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(chunk) => this.relay_chunk(&chunk),
                    Err(_trailers) => continue,
                },
                Poll::Ready(Some(Err(error))) => {
                    this.state = RelayState::Finished;
                    this.settle();
                    return Poll::Ready(Some(Err(error.into())));
                }
                Poll::Ready(None) => this.finish(),
            };
            if !output.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(output))));
            }
        }
    }
}
