//! The cost account of a run.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use ralph_core::budget::{self, Budget, BudgetLimits as Budgets, Spent};
use ralph_core::money::Usd;
use ralph_core::ports::{Clock, TokenUsage};
use ralph_core::price::{self, Price, PriceBook, TokenWindow};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::token_bound::TokenBound;

const MINUTE: Duration = Duration::from_mins(1);

/// The rate limit and prices for model calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MeterRates {
    /// Unlimited if not set.
    pub requests_per_minute: Option<u32>,
    /// Prices that override the built-in ones.
    pub prices: PriceBook,
}

/// The cost of one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// The time at which the call ended.
    pub at: Timestamp,
    /// The model that responded, or the requested one.
    pub model: String,
    pub usage: TokenUsage,
    pub cost: Usd,
    /// Whether the reservation was charged because the provider's count is missing or implausible.
    pub is_estimate: bool,
}

/// Meters the cost of model calls. It is shared by the gate, which charges it, and the run, which
/// reads it.
///
/// The maximum cost of a call is reserved before the call is sent; its actual cost is charged when
/// the provider reports it. A reservation is only granted if spent and reserved amounts together
/// stay within the budgets.
pub struct CostMeter {
    state: Mutex<MeterState>,
    prices: PriceBook,
    open_calls: AtomicUsize,
    clock: Arc<dyn Clock>,
    /// Wakes calls that wait for other reservations to be settled.
    settled: Notify,
    /// Wakes background readers.
    reads_stopped: Notify,
}

struct MeterState {
    budgets: Budgets,
    requests_per_minute: Option<u32>,
    spent: Spent,
    /// The reservations of running calls, not included in `spent`.
    reserved: BudgetAmount,
    /// The budget that could not cover the last call, if none was admitted since.
    insufficient: Option<Budget>,
    recent: VecDeque<Duration>,
}

/// An amount of money and tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BudgetAmount {
    pub(crate) cost: Usd,
    pub(crate) tokens: u64,
}

impl BudgetAmount {
    pub(crate) fn for_usage(price: &Price, usage: &TokenUsage) -> Self {
        Self {
            cost: price::cost(price, usage),
            tokens: usage.total(),
        }
    }

    /// Returns the maximum cost of a call with these token counts.
    pub(crate) fn upper_bound(price: &Price, input: u64, output: u64) -> Self {
        Self {
            cost: price::highest_cost(price, input, output),
            tokens: input.saturating_add(output),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            cost: self.cost + other.cost,
            tokens: self.tokens.saturating_add(other.tokens),
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            cost: self.cost.saturating_sub(other.cost),
            tokens: self.tokens.saturating_sub(other.tokens),
        }
    }
}

/// The reason a call is not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AdmissionError {
    /// A budget is used up.
    Spent(Budget),
    /// The rest of a budget does not cover the call.
    Insufficient(Budget),
    /// The rate limit is reached; another request is allowed after this time.
    RateLimited(Duration),
}

/// A request for a reservation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReservationRequest {
    pub(crate) price: Price,
    pub(crate) bound: TokenBound,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reservation {
    pub(crate) amount: BudgetAmount,
    /// Reserved output tokens of all choices.
    pub(crate) output: u64,
    /// The output limit per choice to write into the request.
    pub(crate) limit: Option<u64>,
}

/// Whether a call waits for the reservations of other calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReservationWait {
    Allowed,
    Expired,
}

/// The result of a reservation request.
pub(crate) enum ReservationOutcome {
    Granted(Reservation),
    /// The required amount is reserved by other calls.
    Wait,
    Insufficient(Budget),
}

impl CostMeter {
    /// Creates the account of a run, which may already have spent something. Only the budgets for
    /// cost and tokens apply.
    pub fn new(
        budgets: &Budgets,
        spent: Spent,
        rates: MeterRates,
        clock: Arc<dyn Clock>,
    ) -> Arc<Self> {
        let state = MeterState {
            budgets: metered_budgets(budgets),
            requests_per_minute: rates.requests_per_minute,
            spent,
            reserved: BudgetAmount::default(),
            insufficient: None,
            recent: VecDeque::new(),
        };
        Arc::new(Self {
            state: Mutex::new(state),
            prices: rates.prices,
            open_calls: AtomicUsize::new(0),
            clock,
            settled: Notify::new(),
            reads_stopped: Notify::new(),
        })
    }

    /// Returns the spent amounts, without the reservations of running calls.
    pub fn spent(&self) -> Spent {
        self.lock_state().spent
    }

    /// Replaces the budgets.
    pub fn set_budgets(&self, budgets: &Budgets) {
        let mut state = self.lock_state();
        state.budgets = metered_budgets(budgets);
        state.insufficient = None;
        drop(state);
        self.settled.notify_waiters();
    }

    /// Returns whether there is a cost budget.
    pub(crate) fn has_cost_budget(&self) -> bool {
        self.lock_state().budgets.max_cost.is_some()
    }

    /// Returns the number of calls that are not charged yet.
    pub fn open_calls(&self) -> usize {
        self.open_calls.load(Ordering::Acquire)
    }

    /// Returns the budget that could not cover the last call, if no call was admitted since and
    /// none is running.
    pub fn insufficient_budget(&self) -> Option<Budget> {
        let state = self.lock_state();
        state
            .insufficient
            .filter(|_| state.reserved == BudgetAmount::default())
    }

    /// Stops background reads and charges their calls by reservation.
    pub fn stop_background_reads(&self) {
        self.reads_stopped.notify_waiters();
    }

    pub(crate) fn background_reads_stopped(&self) -> Notified<'_> {
        self.reads_stopped.notified()
    }

    pub(super) fn reservation_settled(&self) -> Notified<'_> {
        self.settled.notified()
    }

    pub(super) fn call_started(&self) {
        self.open_calls.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn call_ended(&self) {
        self.open_calls.fetch_sub(1, Ordering::AcqRel);
    }

    /// Returns the first budget that is used up, if any.
    pub fn exhausted(&self) -> Option<Budget> {
        let state = self.lock_state();
        budget::exhausted(&state.budgets, &state.spent)
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Admits one request, if the budgets and the rate limit allow it.
    pub(crate) fn admit(&self) -> Result<(), AdmissionError> {
        let now = self.clock.monotonic();
        let mut state = self.lock_state();
        if let Some(budget) = budget::exhausted(&state.budgets, &state.spent) {
            return Err(AdmissionError::Spent(budget));
        }
        let Some(limit) = state.requests_per_minute else {
            return Ok(());
        };
        while state.recent.front().is_some_and(|at| *at + MINUTE <= now) {
            state.recent.pop_front();
        }
        if state.recent.len() >= limit as usize {
            let oldest = state.recent.front().copied().unwrap_or(now);
            return Err(AdmissionError::RateLimited(
                (oldest + MINUTE).saturating_sub(now),
            ));
        }
        state.recent.push_back(now);
        Ok(())
    }

    /// Reserves the maximum cost of a call, or of as much output as the budgets cover.
    pub(super) fn reserve(
        &self,
        request: &ReservationRequest,
        wait: ReservationWait,
    ) -> ReservationOutcome {
        let mut state = self.lock_state();
        let outcome = state.fit(request, wait);
        match &outcome {
            ReservationOutcome::Granted(reservation) => {
                state.reserved = state.reserved.plus(reservation.amount);
                state.insufficient = None;
            }
            ReservationOutcome::Insufficient(budget) => state.insufficient = Some(*budget),
            ReservationOutcome::Wait => {}
        }
        outcome
    }

    /// Returns the price of the model that responded, else of the requested one. If neither is known,
    /// the highest known price applies.
    pub(crate) fn price(
        &self,
        provider: &str,
        answering_model: Option<&str>,
        requested_model: &str,
    ) -> Price {
        let find = |model: &str| {
            let full = format!("{provider}/{model}");
            self.prices
                .price(&full)
                .or_else(|| price::embedded_price(&full))
        };
        answering_model
            .and_then(find)
            .or_else(|| find(requested_model))
            .unwrap_or_else(price::highest_price)
    }

    /// Returns the context window of a model, if known.
    pub(crate) fn window(&self, provider: &str, model: &str) -> Option<TokenWindow> {
        let full = format!("{provider}/{model}");
        let configured = self.prices.window(&full);
        configured.or_else(|| price::embedded_window(&full))
    }

    /// Replaces the reservation of a running call. Returns false if the budgets do not cover the new
    /// one, which is recorded nevertheless.
    pub(super) fn replace_reservation(&self, old: BudgetAmount, new: BudgetAmount) -> bool {
        let mut state = self.lock_state();
        state.reserved = state.reserved.minus(old).plus(new);
        let total = state.spent_with(state.reserved);
        let over = |limit: Option<bool>| limit.unwrap_or(false);
        let is_over = over(state.budgets.max_cost.map(|limit| total.cost > limit))
            || over(state.budgets.max_tokens.map(|limit| total.tokens > limit));
        drop(state);
        self.settled.notify_waiters();
        !is_over
    }

    /// Releases the reservation of a call and charges its cost.
    pub(super) fn settle(&self, reserved: BudgetAmount, charged: BudgetAmount) {
        let mut state = self.lock_state();
        state.reserved = state.reserved.minus(reserved);
        state.spent = state.spent_with(charged);
        drop(state);
        self.settled.notify_waiters();
    }

    fn lock_state(&self) -> MutexGuard<'_, MeterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MeterState {
    fn spent_with(&self, more: BudgetAmount) -> Spent {
        Spent {
            cost: self.spent.cost + more.cost,
            tokens: self.spent.tokens.saturating_add(more.tokens),
            ..self.spent
        }
    }

    /// Decides how much output the budgets cover.
    fn fit(&self, request: &ReservationRequest, wait: ReservationWait) -> ReservationOutcome {
        let ReservationRequest { price, bound } = request;
        let wanted = bound.output.saturating_mul(bound.choices);
        let (affordable, budget) = self.affordable_output(request);
        let fits = affordable.is_some_and(|output| output >= wanted);
        let waits = wait == ReservationWait::Allowed && self.reserved != BudgetAmount::default();
        if !fits && waits {
            return ReservationOutcome::Wait;
        }
        let each = if fits {
            bound.output
        } else {
            affordable.unwrap_or(0) / bound.choices.max(1)
        };
        if !fits && (each < bound.min_output || !bound.is_limitable) {
            return ReservationOutcome::Insufficient(budget);
        }
        let output = each.saturating_mul(bound.choices);
        let is_limited = self.budgets.max_cost.is_some() || self.budgets.max_tokens.is_some();
        let is_written = !fits || (is_limited && !bound.is_explicit && bound.is_limitable);
        ReservationOutcome::Granted(Reservation {
            amount: BudgetAmount::upper_bound(price, bound.input, output),
            output,
            limit: is_written.then_some(each),
        })
    }

    /// Returns the number of output tokens that the budgets cover after the input (`None` if they
    /// do not cover the input), and the tightest budget.
    fn affordable_output(&self, request: &ReservationRequest) -> (Option<u64>, Budget) {
        let total = self.spent_with(self.reserved);
        let input = request.bound.input;
        let by_cost = self.budgets.max_cost.map(|limit| {
            let left = limit.saturating_sub(total.cost);
            let output = price::affordable_output(&request.price, input, left);
            // A free model needs no budget, but a used-up budget allows no calls.
            output.filter(|_| total.cost < limit)
        });
        let by_tokens = self.budgets.max_tokens.map(|limit| {
            let left = limit.saturating_sub(total.tokens);
            left.checked_sub(input)
        });
        match (by_cost, by_tokens) {
            (None, None) => (Some(u64::MAX), Budget::Cost),
            (Some(cost), None) => (cost, Budget::Cost),
            (Some(cost), Some(tokens)) if cost <= tokens => (cost, Budget::Cost),
            (None | Some(_), Some(tokens)) => (tokens, Budget::Tokens),
        }
    }
}

/// Returns the budgets that apply to calls.
fn metered_budgets(budgets: &Budgets) -> Budgets {
    Budgets {
        max_cost: budgets.max_cost,
        max_tokens: budgets.max_tokens,
        ..Budgets::default()
    }
}
