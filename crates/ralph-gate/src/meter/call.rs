//! One call on a run's account, from its request to its charge.

use std::sync::Arc;

use ralph_core::ports::Usage;
use ralph_core::price::Price;

use super::account::Sum;
use super::{Charge, Meter, Unpaid};
use crate::Sink;

/// How many characters a token has, for estimates.
const CHARS_PER_TOKEN: u64 = 4;

/// What a request asks for.
pub(crate) struct Ask {
    /// Whose prices hold.
    pub(crate) provider: String,
    /// The model.
    pub(crate) model: String,
    /// How long the request is, in bytes.
    pub(crate) bytes: u64,
}

/// Whether a call may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It may.
    GoOn,
    /// It goes too far beyond the budget.
    Cut,
}

/// A call that runs. If nobody says what it came to, its estimate is charged.
pub(crate) struct Call {
    meter: Arc<Meter>,
    sink: Arc<dyn Sink>,
    ask: Ask,
    answered_by: Option<String>,
    price: Price,
    prompt: Sum,
    estimate: Usage,
    held: Sum,
    is_open: bool,
}

impl Call {
    pub(crate) fn admit(
        meter: &Arc<Meter>,
        sink: &Arc<dyn Sink>,
        ask: Ask,
    ) -> Result<Self, Unpaid> {
        meter.admit()?;
        let price = meter.price(&ask.provider, None, &ask.model);
        let estimate = Usage {
            input_tokens: ask.bytes.div_ceil(CHARS_PER_TOKEN),
            ..Usage::default()
        };
        let prompt = Sum::of(&price, &estimate);
        meter.hold(Sum::default(), prompt, prompt);
        meter.begin();
        Ok(Self {
            meter: meter.clone(),
            sink: sink.clone(),
            ask,
            answered_by: None,
            price,
            prompt,
            estimate,
            held: prompt,
            is_open: true,
        })
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

    /// Learns how far the answer has come: the tokens of the prompt if they are known, and the
    /// characters of the answer.
    pub(crate) fn progress(&mut self, input: Option<Usage>, chars: u64) -> Step {
        if let Some(input) = input {
            self.estimate = input;
        }
        let output = chars.div_ceil(CHARS_PER_TOKEN);
        self.estimate.output_tokens = self.estimate.output_tokens.max(output);
        let now = Sum::of(&self.price, &self.estimate);
        let goes_on = self.meter.hold(self.held, now, self.prompt);
        self.held = now;
        if goes_on { Step::GoOn } else { Step::Cut }
    }

    /// Charges what the provider says.
    pub(crate) fn settle(mut self, usage: Usage) {
        self.charge(usage, false);
    }

    /// Charges nothing: the provider did not answer, or refused.
    pub(crate) fn forgive(mut self) {
        self.is_open = false;
        self.meter.settle(self.held, Sum::default());
    }

    fn charge(&mut self, usage: Usage, is_estimate: bool) {
        self.is_open = false;
        let sum = Sum::of(&self.price, &usage);
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
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.is_open {
            self.charge(self.estimate, true);
        }
        // Whoever waits for it finds that it was told.
        self.meter.end();
    }
}
