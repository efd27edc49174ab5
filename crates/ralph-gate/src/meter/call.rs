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
/// ignores the output limit. Characters are counted as UTF-8 bytes.
const MAX_CHARS_PER_TOKEN: u64 = 16;
/// The characters per token for estimates of the output, which are deliberately high.
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
        request: MeteredRequest,
        slot: OwnedSemaphorePermit,
        wait: Duration,
    ) -> Result<(Self, Option<u64>), AdmissionError> {
        meter.admit()?;
        let price = meter.price(&request.provider, None, &request.model);
        let bound = request.bound;
        let reservation = reserve(meter, &ReservationRequest { price, bound }, wait).await?;
        meter.call_started();
        let call = Self {
            meter: meter.clone(),
            sink: sink.clone(),
            request,
            answering_model: None,
            price,
            reserved_usage: TokenUsage {
                input_tokens: bound.input,
                output_tokens: reservation.output,
                ..TokenUsage::default()
            },
            reserved_amount: reservation.amount,
            chars: 0,
            is_open: true,
            _slot: slot,
        };
        Ok((call, reservation.limit))
    }

    pub(crate) fn meter(&self) -> &Arc<CostMeter> {
        &self.meter
    }

    /// Sets the model that responds, once, and the price that applies to it.
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
    /// calls; a higher count than reserved can cut the call.
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
        let max_chars = self
            .reserved_usage
            .output_tokens
            .saturating_mul(MAX_CHARS_PER_TOKEN)
            .saturating_add(GRACE_CHARS);
        if chars > max_chars {
            CallControl::Cut
        } else {
            CallControl::Continue
        }
    }

    /// Charges the usage that the provider reports.
    pub(crate) fn settle(mut self, usage: TokenUsage) {
        let amount = BudgetAmount::for_usage(&self.price, &usage);
        self.charge(usage, amount, false);
    }

    /// Charges nothing: the provider did not respond or refused the request.
    pub(crate) fn release(mut self) {
        self.is_open = false;
        self.meter
            .settle(self.reserved_amount, BudgetAmount::default());
    }

    fn charge(&mut self, usage: TokenUsage, amount: BudgetAmount, is_estimate: bool) {
        self.is_open = false;
        self.meter.settle(self.reserved_amount, amount);
        let model = self.answering_model.take();
        self.sink.record_charge(Charge {
            at: self.meter.clock().now(),
            model: model.unwrap_or_else(|| std::mem::take(&mut self.request.model)),
            usage,
            cost: amount.cost,
            is_estimate,
        });
    }

    /// Charges the reservation, or more if the response was longer.
    fn charge_reservation(&mut self) {
        let estimated_output = self.chars / ESTIMATED_CHARS_PER_TOKEN;
        let mut usage = self.reserved_usage;
        let mut amount = self.reserved_amount;
        if self.update_progress(self.chars) == CallControl::Cut
            && estimated_output > usage.output_tokens
        {
            usage = price::with_worst_output(&self.price, usage, estimated_output);
            let more = BudgetAmount::for_usage(&self.price, &usage);
            amount.cost = amount.cost.max(more.cost);
            amount.tokens = amount.tokens.max(more.tokens);
        }
        self.charge(usage, amount, true);
    }
}

/// Reserves the amount for a call, waiting a limited time while other calls have it reserved.
async fn reserve(
    meter: &CostMeter,
    request: &ReservationRequest,
    wait: Duration,
) -> Result<Reservation, AdmissionError> {
    let deadline = Instant::now() + wait;
    let mut reservation_wait = ReservationWait::Allowed;
    loop {
        let mut settled = pin!(meter.reservation_settled());
        // Subscribe before the check, so that no settlement is missed.
        settled.as_mut().enable();
        match meter.reserve(request, reservation_wait) {
            ReservationOutcome::Granted(reservation) => return Ok(reservation),
            ReservationOutcome::Insufficient(budget) => {
                return Err(AdmissionError::Insufficient(budget));
            }
            ReservationOutcome::Wait => {}
        }
        if timeout_at(deadline, settled).await.is_err() {
            reservation_wait = ReservationWait::Expired;
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
