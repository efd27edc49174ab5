//! One call on a run's account, from its reservation to its charge.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use ralph_core::ports::Usage;
use ralph_core::price::{self, Price};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

use super::account::{Grant, Patience, Quote, Reserving, Sum};
use super::bound::TokenBound;
use super::{Charge, Meter, Unpaid};
use crate::Sink;

/// More characters than a token stands for on average in any answer. A longer answer shows that the
/// provider ignores the output limit.
const MOST_CHARS_PER_TOKEN: u64 = 16;
/// The same for estimates, which are rather too high.
const CHARS_PER_TOKEN: u64 = 4;
/// Characters that any answer may have.
const FREE_CHARS: u64 = 1024;

/// What a request asks for.
pub(crate) struct Ask {
    /// Whose prices hold.
    pub(crate) provider: String,
    /// The model.
    pub(crate) model: String,
    pub(crate) bound: TokenBound,
}

/// Whether a call may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It may.
    GoOn,
    /// The budget does not cover it.
    Cut,
}

/// A call that runs. Without a count from the provider, its reservation is charged.
pub(crate) struct Call {
    meter: Arc<Meter>,
    sink: Arc<dyn Sink>,
    ask: Ask,
    answered_by: Option<String>,
    price: Price,
    /// The tokens that the reservation stands for. Once the provider has counted the input, that is exact.
    reserved: Usage,
    held: Sum,
    chars: u64,
    is_open: bool,
    _slot: OwnedSemaphorePermit,
}

impl Call {
    /// Reserves the most that a call can cost, waiting for other calls to be settled if need be. Returns
    /// the call and the output limit that has to be written into its request, if any.
    pub(crate) async fn admit(
        meter: &Arc<Meter>,
        sink: &Arc<dyn Sink>,
        ask: Ask,
        slot: OwnedSemaphorePermit,
        wait: Duration,
    ) -> Result<(Self, Option<u64>), Unpaid> {
        meter.admit()?;
        let price = meter.price(&ask.provider, None, &ask.model);
        let bound = ask.bound;
        let grant = reserve(meter, &Quote { price, bound }, wait).await?;
        meter.begin();
        let call = Self {
            meter: meter.clone(),
            sink: sink.clone(),
            ask,
            answered_by: None,
            price,
            reserved: Usage {
                input_tokens: bound.input,
                output_tokens: grant.output,
                ..Usage::default()
            },
            held: grant.held,
            chars: 0,
            is_open: true,
            _slot: slot,
        };
        Ok((call, grant.limit))
    }

    pub(crate) fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// Learns which model answers.
    pub(crate) fn answered_by(&mut self, model: &str) {
        if self.answered_by.is_none() {
            // The price of the model that was asked is known by now.
            if model != self.ask.model {
                self.price = self
                    .meter
                    .price(&self.ask.provider, Some(model), &self.ask.model);
            }
            self.answered_by = Some(model.to_owned());
        }
    }

    /// Learns the provider's count of the input. What was reserved beyond it is free for other calls.
    pub(crate) fn counted(&mut self, input: Usage) -> Step {
        let old = self.held;
        let output = self.reserved.output_tokens;
        self.reserved = price::with_worst_output(&self.price, input, output);
        self.held = Sum::of(&self.price, &self.reserved);
        let is_covered = self.meter.replace(old, self.held);
        if is_covered { Step::GoOn } else { Step::Cut }
    }

    /// Learns how many characters the answer has so far.
    pub(crate) fn progress(&mut self, chars: u64) -> Step {
        self.chars = chars;
        let most = self
            .reserved
            .output_tokens
            .saturating_mul(MOST_CHARS_PER_TOKEN)
            .saturating_add(FREE_CHARS);
        if chars > most { Step::Cut } else { Step::GoOn }
    }

    /// Charges what the provider says.
    pub(crate) fn settle(mut self, usage: Usage) {
        let sum = Sum::of(&self.price, &usage);
        self.charge(usage, sum, false);
    }

    /// Charges nothing: the provider did not answer, or refused.
    pub(crate) fn forgive(mut self) {
        self.is_open = false;
        self.meter.settle(self.held, Sum::default());
    }

    fn charge(&mut self, usage: Usage, sum: Sum, is_estimate: bool) {
        self.is_open = false;
        self.meter.settle(self.held, sum);
        let model = self.answered_by.take();
        self.sink.charged(Charge {
            at: self.meter.clock().now(),
            model: model.unwrap_or_else(|| std::mem::take(&mut self.ask.model)),
            usage,
            cost: sum.cost,
            is_estimate,
        });
    }

    /// Charges the reservation, or more if more was written.
    fn charge_reservation(&mut self) {
        let written = self.chars / CHARS_PER_TOKEN;
        let mut usage = self.reserved;
        let mut sum = self.held;
        if self.progress(self.chars) == Step::Cut && written > usage.output_tokens {
            usage = price::with_worst_output(&self.price, usage, written);
            let more = Sum::of(&self.price, &usage);
            sum.cost = sum.cost.max(more.cost);
            sum.tokens = sum.tokens.max(more.tokens);
        }
        self.charge(usage, sum, true);
    }
}

/// Reserves what a call needs; while other calls hold it, waits for them, but not for long.
async fn reserve(meter: &Meter, quote: &Quote, wait: Duration) -> Result<Grant, Unpaid> {
    let deadline = Instant::now() + wait;
    let mut patience = Patience::Waits;
    loop {
        let mut settled = pin!(meter.until_settled());
        // A call that is settled from here on is not missed.
        settled.as_mut().enable();
        match meter.reserve(quote, patience) {
            Reserving::Granted(grant) => return Ok(grant),
            Reserving::Short(budget) => return Err(Unpaid::Short(budget)),
            Reserving::Wait => {}
        }
        if timeout_at(deadline, settled).await.is_err() {
            patience = Patience::Over;
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.is_open {
            self.charge_reservation();
        }
        // After the charge is reported: a run that waits for open calls finds it.
        self.meter.end();
    }
}
