//! An answer on its way back: metered, searched for the credential, recorded, and never kept waiting.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use ralph_core::net::{EgressDecider, EgressReason};
use ralph_core::secret::RedactStream;

use super::background_reader::BackgroundReader;
use super::refusal::CredentialRefusal;
use super::route::ErrorDialect;
use crate::audit::OpenRecord;
use crate::cassette::ExchangeRecorder;
use crate::http::{BoxError, UpstreamBody};
use crate::meter::{CallControl, ResponseMeter};

/// The body of an answer.
pub(super) struct RelayedBody {
    /// None once the provider's answer is read to its end, or cut.
    pub(super) upstream: Option<UpstreamBody>,
    pub(super) redact: Option<RedactStream>,
    pub(super) meter: Option<ResponseMeter>,
    pub(super) recorder: Option<ExchangeRecorder>,
    /// In whose form it is said that the budget ended in the middle.
    pub(super) dialect: ErrorDialect,
    pub(super) record: Option<OpenRecord>,
    pub(super) state: RelayState,
    pub(super) background_reader: BackgroundReader,
}

/// How far an answer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RelayState {
    /// It flows.
    Open,
    /// The last words are said; they are given time to be sent.
    SendingError,
    /// It ends as a failure, so that nobody takes it for whole.
    Cut,
    /// It is over.
    Finished,
}

impl RelayedBody {
    /// Takes a chunk from the provider and returns what of it may be shown by now.
    fn relay_chunk(&mut self, chunk: &Bytes) -> Bytes {
        if let Some(record) = &self.record {
            record.add_received(chunk.len());
        }
        let step = self.meter.as_mut().map(|gauge| gauge.feed(chunk));
        if step == Some(CallControl::Cut) {
            self.state = RelayState::SendingError;
            self.settle();
            return budget_error_event(self.dialect);
        }
        let Some(redact) = &mut self.redact else {
            return Bytes::new();
        };
        let mut shown = Vec::with_capacity(chunk.len());
        redact.push(chunk, &mut shown);
        self.record_chunk(shown)
    }

    /// Ends the answer and returns what was held back until now.
    fn finish(&mut self) -> Bytes {
        self.state = RelayState::Finished;
        let mut shown = Vec::new();
        if let Some(redact) = self.redact.take() {
            redact.finish(&mut shown);
        }
        let shown = self.record_chunk(shown);
        if let Some(tape) = self.recorder.take() {
            tape.finish();
        }
        self.settle();
        shown
    }

    fn record_chunk(&mut self, shown: Vec<u8>) -> Bytes {
        if let Some(tape) = &mut self.recorder {
            tape.push(&shown);
        }
        shown.into()
    }

    /// Settles the account and the record.
    fn settle(&mut self) {
        drop(self.upstream.take());
        drop(self.meter.take());
        drop(self.record.take());
    }
}

impl Drop for RelayedBody {
    /// A client that leaves does not end what the provider bills: the answer is read on.
    fn drop(&mut self) {
        if let (Some(upstream), Some(gauge)) = (self.upstream.take(), self.meter.take()) {
            self.background_reader.spawn(upstream, gauge);
        }
    }
}

/// Returns what is said when the budget ends in the middle.
fn budget_error_event(dialect: ErrorDialect) -> Bytes {
    let spent = "the run's budget is spent — the answer was cut — stop here";
    let spent =
        CredentialRefusal::new(402, EgressReason::BudgetSpent, EgressDecider::Budget, spent);
    spent.to_stream_event(dialect).into()
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
            let shown = match upstream.poll_frame(cx) {
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
            if !shown.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(shown))));
            }
        }
    }
}
