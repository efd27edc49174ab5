//! An answer on its way back: metered, searched for the credential, recorded, and never kept waiting.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use ralph_core::net::{Decider, Reason};
use ralph_core::secret::RedactStream;

use super::read_on::ReadOn;
use super::route::Dialect;
use super::words::Refused;
use crate::audit::OpenRecord;
use crate::cassette::Tape;
use crate::http::{Answer, BoxError};
use crate::meter::{Gauge, Step};

/// The body of an answer.
pub(super) struct Relay {
    /// None once the provider's answer is read to its end, or cut.
    pub(super) upstream: Option<Answer>,
    pub(super) redact: Option<RedactStream>,
    pub(super) gauge: Option<Gauge>,
    pub(super) tape: Option<Tape>,
    /// In whose form it is said that the budget ended in the middle.
    pub(super) dialect: Dialect,
    pub(super) record: Option<OpenRecord>,
    pub(super) state: State,
    pub(super) read_on: ReadOn,
}

/// How far an answer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// It flows.
    Open,
    /// The last words are said; they are given time to be sent.
    Saying,
    /// It ends as a failure, so that nobody takes it for whole.
    Cut,
    /// It is over.
    Done,
}

impl Relay {
    /// Takes a chunk from the provider and returns what of it may be shown by now.
    fn pass(&mut self, chunk: &Bytes) -> Bytes {
        if let Some(record) = &self.record {
            record.came_back(chunk.len());
        }
        let step = self.gauge.as_mut().map(|gauge| gauge.feed(chunk));
        if step == Some(Step::Cut) {
            self.state = State::Saying;
            self.close();
            return last_words(self.dialect);
        }
        let Some(redact) = &mut self.redact else {
            return Bytes::new();
        };
        let mut shown = Vec::with_capacity(chunk.len());
        redact.push(chunk, &mut shown);
        self.keep(shown)
    }

    /// Ends the answer and returns what was held back until now.
    fn finish(&mut self) -> Bytes {
        self.state = State::Done;
        let mut shown = Vec::new();
        if let Some(redact) = self.redact.take() {
            redact.finish(&mut shown);
        }
        let shown = self.keep(shown);
        if let Some(tape) = self.tape.take() {
            tape.finish();
        }
        self.close();
        shown
    }

    fn keep(&mut self, shown: Vec<u8>) -> Bytes {
        if let Some(tape) = &mut self.tape {
            tape.push(&shown);
        }
        shown.into()
    }

    /// Settles the account and the record.
    fn close(&mut self) {
        drop(self.upstream.take());
        drop(self.gauge.take());
        drop(self.record.take());
    }
}

impl Drop for Relay {
    /// A client that leaves does not end what the provider bills: the answer is read on.
    fn drop(&mut self) {
        if let (Some(upstream), Some(gauge)) = (self.upstream.take(), self.gauge.take()) {
            self.read_on.spawn(upstream, gauge);
        }
    }
}

/// Returns what is said when the budget ends in the middle.
fn last_words(dialect: Dialect) -> Bytes {
    let spent = "the run's budget is spent — the answer was cut — stop here";
    let spent = Refused::new(402, Reason::BudgetSpent, Decider::Budget, spent);
    spent.event(dialect).into()
}

impl Body for Relay {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        loop {
            match this.state {
                State::Open => {}
                State::Saying => {
                    this.state = State::Cut;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                State::Cut => {
                    this.state = State::Done;
                    return Poll::Ready(Some(Err("the budget is spent".into())));
                }
                State::Done => return Poll::Ready(None),
            }
            let Some(upstream) = &mut this.upstream else {
                return Poll::Ready(None);
            };
            let shown = match upstream.poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(chunk) => this.pass(&chunk),
                    Err(_trailers) => continue,
                },
                Poll::Ready(Some(Err(error))) => {
                    this.state = State::Done;
                    this.close();
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
