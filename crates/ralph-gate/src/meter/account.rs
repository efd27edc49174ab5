//! The account of a run.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use ralph_core::budget::{self, Budget, Limits as Budgets, Spent};
use ralph_core::money::Usd;
use ralph_core::ports::{Clock, Usage};
use ralph_core::price::{self, Price, PriceBook, Window};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::bound::TokenBound;

const MINUTE: Duration = Duration::from_mins(1);

/// How often and at what price models may be asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rates {
    /// How many requests a minute may have.
    pub requests_per_minute: Option<u32>,
    /// Prices that come before the usual ones.
    pub prices: PriceBook,
}

/// What one call cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// When it ended.
    pub at: Timestamp,
    /// The model that answered, or was asked.
    pub model: String,
    /// The tokens.
    pub usage: Usage,
    /// The cost.
    pub cost: Usd,
    /// Whether the reservation was charged, because the provider's count did not arrive or cannot be
    /// true.
    pub is_estimate: bool,
}

/// Counts what models cost. The gate charges it, the run asks it; both have the same one.
///
/// Before a call is made, the most that it can cost is reserved; what it did cost is charged when the
/// provider has said so. Spent and reserved together never exceed a budget.
pub struct Meter {
    state: Mutex<State>,
    prices: PriceBook,
    open: AtomicUsize,
    clock: Arc<dyn Clock>,
    /// Wakes calls that wait for reservations of others to be settled.
    settled: Notify,
    /// Wakes the readers of answers that no client waits for.
    hurry: Notify,
}

struct State {
    budgets: Budgets,
    requests_per_minute: Option<u32>,
    spent: Spent,
    /// The reservations of the calls that run, part of no sum yet.
    reserved: Sum,
    /// The budget that did not pay for the last call, if none was admitted since.
    short: Option<Budget>,
    recent: VecDeque<Duration>,
}

/// Money and tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) cost: Usd,
    pub(crate) tokens: u64,
}

impl Sum {
    pub(crate) fn of(price: &Price, usage: &Usage) -> Self {
        Self {
            cost: price::cost(price, usage),
            tokens: usage.total(),
        }
    }

    /// The most that a call within these counts can come to.
    pub(crate) fn most(price: &Price, input: u64, output: u64) -> Self {
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

/// Why a call may not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unpaid {
    /// A budget is used up.
    Spent(Budget),
    /// What is left of a budget does not pay for the call.
    Short(Budget),
    /// There were too many requests; another may be made after this time.
    TooMany(Duration),
}

/// A call that asks for a reservation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quote {
    pub(crate) price: Price,
    pub(crate) bound: TokenBound,
}

/// A reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) held: Sum,
    /// Output tokens that are paid for, of all choices.
    pub(crate) output: u64,
    /// The output limit of each choice that has to be written into the request.
    pub(crate) limit: Option<u64>,
}

/// Whether a call that does not fit beside others waits for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    Waits,
    Over,
}

/// What becomes of a quote.
pub(crate) enum Reserving {
    Granted(Grant),
    /// Other calls hold what it needs.
    Wait,
    Short(Budget),
}

impl Meter {
    /// Opens the account of a run that may have spent something already. Of the budgets, those for
    /// cost and tokens count here.
    pub fn new(budgets: &Budgets, spent: Spent, rates: Rates, clock: Arc<dyn Clock>) -> Arc<Self> {
        let state = State {
            budgets: paid(budgets),
            requests_per_minute: rates.requests_per_minute,
            spent,
            reserved: Sum::default(),
            short: None,
            recent: VecDeque::new(),
        };
        Arc::new(Self {
            state: Mutex::new(state),
            prices: rates.prices,
            open: AtomicUsize::new(0),
            clock,
            settled: Notify::new(),
            hurry: Notify::new(),
        })
    }

    /// Returns what was spent, reservations of calls that still run not included.
    pub fn spent(&self) -> Spent {
        self.state().spent
    }

    /// Sets other budgets, from now on.
    pub fn set_budgets(&self, budgets: &Budgets) {
        let mut state = self.state();
        state.budgets = paid(budgets);
        state.short = None;
        drop(state);
        self.settled.notify_waiters();
    }

    /// Tells whether there is a budget for cost.
    pub(crate) fn limits_cost(&self) -> bool {
        self.state().budgets.max_cost.is_some()
    }

    /// Returns how many calls are under way whose cost is not charged yet.
    pub fn open_calls(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }

    /// Returns the budget that did not pay for the last call, if no other call was admitted since and
    /// none is under way.
    pub fn short_of(&self) -> Option<Budget> {
        let state = self.state();
        state.short.filter(|_| state.reserved == Sum::default())
    }

    /// Charges calls whose client has left by their reservation now, instead of reading on.
    pub fn stop_reading_on(&self) {
        self.hurry.notify_waiters();
    }

    pub(crate) fn until_hurried(&self) -> Notified<'_> {
        self.hurry.notified()
    }

    pub(super) fn until_settled(&self) -> Notified<'_> {
        self.settled.notified()
    }

    pub(super) fn begin(&self) {
        self.open.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn end(&self) {
        self.open.fetch_sub(1, Ordering::AcqRel);
    }

    /// Returns the budget that is used up, if any.
    pub fn exhausted(&self) -> Option<Budget> {
        let state = self.state();
        budget::exhausted(&state.budgets, &state.spent)
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Lets one request through, if there is money and time for it.
    pub(crate) fn admit(&self) -> Result<(), Unpaid> {
        let now = self.clock.monotonic();
        let mut state = self.state();
        if let Some(budget) = budget::exhausted(&state.budgets, &state.spent) {
            return Err(Unpaid::Spent(budget));
        }
        let Some(most) = state.requests_per_minute else {
            return Ok(());
        };
        while state.recent.front().is_some_and(|at| *at + MINUTE <= now) {
            state.recent.pop_front();
        }
        if state.recent.len() >= most as usize {
            let oldest = state.recent.front().copied().unwrap_or(now);
            return Err(Unpaid::TooMany((oldest + MINUTE).saturating_sub(now)));
        }
        state.recent.push_back(now);
        Ok(())
    }

    /// Reserves the most that a call can cost, or a part of its output.
    pub(super) fn reserve(&self, quote: &Quote, patience: Patience) -> Reserving {
        let mut state = self.state();
        let reserving = state.fit(quote, patience);
        match &reserving {
            Reserving::Granted(grant) => {
                state.reserved = state.reserved.plus(grant.held);
                state.short = None;
            }
            Reserving::Short(budget) => state.short = Some(*budget),
            Reserving::Wait => {}
        }
        reserving
    }

    /// Returns the price of a model by the names it may have; an unknown one has the highest.
    pub(crate) fn price(&self, provider: &str, answered: Option<&str>, asked: &str) -> Price {
        let find = |model: &str| {
            let full = format!("{provider}/{model}");
            self.prices.price(&full).or_else(|| price::known(&full))
        };
        answered
            .and_then(find)
            .or_else(|| find(asked))
            .unwrap_or_else(price::highest)
    }

    /// Returns the token window of a model, if it is known.
    pub(crate) fn window(&self, provider: &str, model: &str) -> Option<Window> {
        let full = format!("{provider}/{model}");
        let own = self.prices.window(&full);
        own.or_else(|| price::known_window(&full))
    }

    /// Replaces the reservation of a call that runs; false if the budgets do not cover the new one.
    pub(super) fn replace(&self, old: Sum, new: Sum) -> bool {
        let mut state = self.state();
        state.reserved = state.reserved.minus(old).plus(new);
        let total = state.with(state.reserved);
        let over = |limit: Option<bool>| limit.unwrap_or(false);
        let is_over = over(state.budgets.max_cost.map(|limit| total.cost > limit))
            || over(state.budgets.max_tokens.map(|limit| total.tokens > limit));
        drop(state);
        self.settled.notify_waiters();
        !is_over
    }

    /// Releases the reservation of a call and charges what it came to.
    pub(super) fn settle(&self, held: Sum, charged: Sum) {
        let mut state = self.state();
        state.reserved = state.reserved.minus(held);
        state.spent = state.with(charged);
        drop(state);
        self.settled.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn with(&self, more: Sum) -> Spent {
        Spent {
            cost: self.spent.cost + more.cost,
            tokens: self.spent.tokens.saturating_add(more.tokens),
            ..self.spent
        }
    }

    /// Decides how much output is paid for.
    fn fit(&self, quote: &Quote, patience: Patience) -> Reserving {
        let Quote { price, bound } = quote;
        let wanted = bound.output.saturating_mul(bound.choices);
        let (affordable, budget) = self.affordable_output(quote);
        let fits = affordable.is_some_and(|output| output >= wanted);
        let waits = patience == Patience::Waits && self.reserved != Sum::default();
        if !fits && waits {
            return Reserving::Wait;
        }
        let each = if fits {
            bound.output
        } else {
            affordable.unwrap_or(0) / bound.choices.max(1)
        };
        if !fits && (each < bound.least || !bound.is_limitable) {
            return Reserving::Short(budget);
        }
        let output = each.saturating_mul(bound.choices);
        let is_limited = self.budgets.max_cost.is_some() || self.budgets.max_tokens.is_some();
        let is_written = !fits || (is_limited && !bound.is_stated && bound.is_limitable);
        Reserving::Granted(Grant {
            held: Sum::most(price, bound.input, output),
            output,
            limit: is_written.then_some(each),
        })
    }

    /// Returns how many output tokens are left for a call after its input, none if the input is not
    /// covered, and the budget that leaves the fewest.
    fn affordable_output(&self, quote: &Quote) -> (Option<u64>, Budget) {
        let total = self.with(self.reserved);
        let input = quote.bound.input;
        let by_cost = self.budgets.max_cost.map(|limit| {
            let left = limit.saturating_sub(total.cost);
            let output = price::affordable_output(&quote.price, input, left);
            // A model that costs nothing needs no budget, but a budget that is used up allows nothing.
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

/// Returns the budgets that calls are paid from.
fn paid(budgets: &Budgets) -> Budgets {
    Budgets {
        max_cost: budgets.max_cost,
        max_tokens: budgets.max_tokens,
        ..Budgets::default()
    }
}
