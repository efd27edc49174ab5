//! One model call, from its reservation to its charge.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use ralph_core::ports::TokenUsage;
use ralph_core::price::{self, Price};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

use super::account::{
    BudgetAmount, Reservation, ReservationOutcome, ReservationRequest, ReservationWait,
};
use super::token_bound::TokenBound;
use super::{AdmissionError, Charge, CostMeter};
use crate::GateSink;

/// An upper bound on the average characters per token. A longer response shows that the provider
/// ignores the output limit.
const MAX_CHARS_PER_TOKEN: u64 = 16;
/// The characters per token for estimates, which are deliberately high.
const ESTIMATED_CHARS_PER_TOKEN: u64 = 4;
/// The number of characters that any response may have.
const GRACE_CHARS: u64 = 1024;

pub(crate) struct MeteredRequest {
    /// The provider whose prices apply.
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) bound: TokenBound,
}

/// Whether a call may continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallControl {
    /// The call may continue.
    Continue,
    /// The budget does not cover the rest of the call.
    Cut,
}

/// A running call. If the provider reports no token count, the reservation is charged.
pub(crate) struct MeteredCall {
    meter: Arc<CostMeter>,
    sink: Arc<dyn GateSink>,
    request: MeteredRequest,
    answering_model: Option<String>,
    price: Price,
    /// The reserved tokens. The input is exact once the provider has counted it.
    reserved_usage: TokenUsage,
    reserved_amount: BudgetAmount,
    chars: u64,
    is_open: bool,
    _slot: OwnedSemaphorePermit,
}

impl MeteredCall {
    /// Reserves the maximum cost of a call, waiting for other calls to settle if necessary. Returns
    /// the call and the output limit to write into its request, if any.
    pub(crate) async fn admit(
        meter: &Arc<CostMeter>,
        sink: &Arc<dyn GateSink>,
        ask: MeteredRequest,
        slot: OwnedSemaphorePermit,
        wait: Duration,
    ) -> Result<(Self, Option<u64>), AdmissionError> {
        meter.admit()?;
        let price = meter.price(&ask.provider, None, &ask.model);
        let bound = ask.bound;
        let grant = reserve(meter, &ReservationRequest { price, bound }, wait).await?;
        meter.call_started();
        let call = Self {
            meter: meter.clone(),
            sink: sink.clone(),
            request: ask,
            answering_model: None,
            price,
            reserved_usage: TokenUsage {
                input_tokens: bound.input,
                output_tokens: grant.output,
                ..TokenUsage::default()
            },
            reserved_amount: grant.amount,
            chars: 0,
            is_open: true,
            _slot: slot,
        };
        Ok((call, grant.limit))
    }

    pub(crate) fn meter(&self) -> &Arc<CostMeter> {
        &self.meter
    }

    /// Sets the model that responds.
    pub(crate) fn set_answering_model(&mut self, model: &str) {
        if self.answering_model.is_none() {
            // The price of the requested model is already known.
            if model != self.request.model {
                self.price =
                    self.meter
                        .price(&self.request.provider, Some(model), &self.request.model);
            }
            self.answering_model = Some(model.to_owned());
        }
    }

    /// Sets the provider's input count. The excess of the reservation becomes available to other
    /// calls.
    pub(crate) fn update_input(&mut self, input: TokenUsage) -> CallControl {
        let old = self.reserved_amount;
        let output = self.reserved_usage.output_tokens;
        self.reserved_usage = price::with_worst_output(&self.price, input, output);
        self.reserved_amount = BudgetAmount::for_usage(&self.price, &self.reserved_usage);
        let is_covered = self.meter.replace_reservation(old, self.reserved_amount);
        if is_covered {
            CallControl::Continue
        } else {
            CallControl::Cut
        }
    }

    /// Sets the number of characters received so far.
    pub(crate) fn update_progress(&mut self, chars: u64) -> CallControl {
        self.chars = chars;
        let most = self
            .reserved_usage
            .output_tokens
            .saturating_mul(MAX_CHARS_PER_TOKEN)
            .saturating_add(GRACE_CHARS);
        if chars > most {
            CallControl::Cut
        } else {
            CallControl::Continue
        }
    }

    /// Charges the usage that the provider reports.
    pub(crate) fn settle(mut self, usage: TokenUsage) {
        let sum = BudgetAmount::for_usage(&self.price, &usage);
        self.charge(usage, sum, false);
    }

    /// Charges nothing: the provider did not respond or refused the request.
    pub(crate) fn release(mut self) {
        self.is_open = false;
        self.meter
            .settle(self.reserved_amount, BudgetAmount::default());
    }

    fn charge(&mut self, usage: TokenUsage, sum: BudgetAmount, is_estimate: bool) {
        self.is_open = false;
        self.meter.settle(self.reserved_amount, sum);
        let model = self.answering_model.take();
        self.sink.record_charge(Charge {
            at: self.meter.clock().now(),
            model: model.unwrap_or_else(|| std::mem::take(&mut self.request.model)),
            usage,
            cost: sum.cost,
            is_estimate,
        });
    }

    /// Charges the reservation, or more if the response was longer.
    fn charge_reservation(&mut self) {
        let written = self.chars / ESTIMATED_CHARS_PER_TOKEN;
        let mut usage = self.reserved_usage;
        let mut sum = self.reserved_amount;
        if self.update_progress(self.chars) == CallControl::Cut && written > usage.output_tokens {
            usage = price::with_worst_output(&self.price, usage, written);
            let more = BudgetAmount::for_usage(&self.price, &usage);
            sum.cost = sum.cost.max(more.cost);
            sum.tokens = sum.tokens.max(more.tokens);
        }
        self.charge(usage, sum, true);
    }
}

/// Reserves the amount for a call, waiting a limited time while other calls have it reserved.
async fn reserve(
    meter: &CostMeter,
    quote: &ReservationRequest,
    wait: Duration,
) -> Result<Reservation, AdmissionError> {
    let deadline = Instant::now() + wait;
    let mut patience = ReservationWait::Allowed;
    loop {
        let mut settled = pin!(meter.reservation_settled());
        // Subscribe before the check, so that no settlement is missed.
        settled.as_mut().enable();
        match meter.reserve(quote, patience) {
            ReservationOutcome::Granted(grant) => return Ok(grant),
            ReservationOutcome::Insufficient(budget) => {
                return Err(AdmissionError::Insufficient(budget));
            }
            ReservationOutcome::Wait => {}
        }
        if timeout_at(deadline, settled).await.is_err() {
            patience = ReservationWait::Expired;
        }
    }
}

impl Drop for MeteredCall {
    fn drop(&mut self) {
        if self.is_open {
            self.charge_reservation();
        }
        // After the charge is reported, so that a run waiting for open calls sees it.
        self.meter.call_ended();
    }
}
