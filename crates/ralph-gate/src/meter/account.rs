//! The account of a run.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use ralph_core::budget::{self, Budget, Limits as Budgets, Spent};
use ralph_core::money::Usd;
use ralph_core::ports::{Clock, Usage};
use ralph_core::price::{self, Price, PriceBook};
use serde::{Deserialize, Serialize};

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
    /// Whether the tokens were estimated, because the answer did not tell.
    pub is_estimate: bool,
}

/// Counts what models cost. The gate charges it, the run asks it; both have the same one.
pub struct Meter {
    state: Mutex<State>,
    prices: PriceBook,
    open: AtomicUsize,
    clock: Arc<dyn Clock>,
}

struct State {
    budgets: Budgets,
    requests_per_minute: Option<u32>,
    spent: Spent,
    /// The estimates of the calls that run, part of no sum yet.
    flying: Sum,
    /// The largest call so far.
    largest: Sum,
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

    fn plus(self, other: Self) -> Self {
        Self {
            cost: self.cost + other.cost,
            tokens: self.tokens.saturating_add(other.tokens),
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            cost: Usd::from_nanos(self.cost.nanos().saturating_sub(other.cost.nanos())),
            tokens: self.tokens.saturating_sub(other.tokens),
        }
    }

    fn max(self, other: Self) -> Self {
        Self {
            cost: self.cost.max(other.cost),
            tokens: self.tokens.max(other.tokens),
        }
    }
}

/// Why a call may not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unpaid {
    /// A budget is used up.
    Spent(Budget),
    /// There were too many requests; another may be made after this time.
    TooMany(Duration),
}

impl Meter {
    /// Opens the account of a run that may have spent something already. Of the budgets, those for
    /// cost and tokens count here.
    pub fn new(budgets: &Budgets, spent: Spent, rates: Rates, clock: Arc<dyn Clock>) -> Arc<Self> {
        let state = State {
            budgets: paid(budgets),
            requests_per_minute: rates.requests_per_minute,
            spent,
            flying: Sum::default(),
            largest: Sum::default(),
            recent: VecDeque::new(),
        };
        Arc::new(Self {
            state: Mutex::new(state),
            prices: rates.prices,
            open: AtomicUsize::new(0),
            clock,
        })
    }

    /// Returns what was spent, estimates of calls that still run not included.
    pub fn spent(&self) -> Spent {
        self.state().spent
    }

    /// Sets other budgets, from now on.
    pub fn set_budgets(&self, budgets: &Budgets) {
        self.state().budgets = paid(budgets);
    }

    /// Returns how many calls are under way whose cost is not told yet.
    pub fn open_calls(&self) -> usize {
        self.open.load(Ordering::Acquire)
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
        let with_flying = state.with(state.flying);
        if let Some(budget) = budget::exhausted(&state.budgets, &with_flying) {
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

    /// Replaces the estimate of a call that runs; tells whether the call may go on.
    ///
    /// A call during which the budget ends may finish: what it has written so far is paid for
    /// anyway. But it may not go beyond the budget by more than one call has cost before.
    pub(crate) fn hold(&self, old: Sum, new: Sum, prompt: Sum) -> bool {
        let mut state = self.state();
        state.flying = state.flying.minus(old).plus(new);
        let one_call = state.largest.max(prompt);
        let total = state.with(state.flying.minus(one_call));
        let over = |limit: Option<bool>| limit.unwrap_or(false);
        !(over(state.budgets.max_cost.map(|limit| total.cost > limit))
            || over(state.budgets.max_tokens.map(|limit| total.tokens > limit)))
    }

    /// Takes the estimate of a call away and charges what it came to.
    pub(crate) fn settle(&self, held: Sum, charged: Sum) {
        let mut state = self.state();
        state.flying = state.flying.minus(held);
        state.largest = state.largest.max(charged);
        state.spent = state.with(charged);
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
}

/// Returns the budgets that calls are paid from.
fn paid(budgets: &Budgets) -> Budgets {
    Budgets {
        max_cost: budgets.max_cost,
        max_tokens: budgets.max_tokens,
        ..Budgets::default()
    }
}
