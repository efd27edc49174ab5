//! Budgets: the limits of a run, its spending so far, and which limit is used up.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::money::Usd;
use crate::price::{self, Price};

/// The limits of a run. `None` means that the budget is not set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetLimits {
    pub max_iterations: Option<u32>,
    /// Excludes pauses.
    pub max_wall_time: Option<Duration>,
    /// Cost of all model calls.
    pub max_cost: Option<Usd>,
    /// Input and output tokens of all model calls.
    pub max_tokens: Option<u64>,
}

impl BudgetLimits {
    /// Returns whether no budget is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether a budget is set.
    pub fn sets(&self, budget: Budget) -> bool {
        match budget {
            Budget::Iterations => self.max_iterations.is_some(),
            Budget::WallTime => self.max_wall_time.is_some(),
            Budget::Cost => self.max_cost.is_some(),
            Budget::Tokens => self.max_tokens.is_some(),
        }
    }

    /// Returns these limits with every limit that `change` sets.
    #[must_use]
    pub fn changed_by(&self, change: &Self) -> Self {
        Self {
            max_iterations: change.max_iterations.or(self.max_iterations),
            max_wall_time: change.max_wall_time.or(self.max_wall_time),
            max_cost: change.max_cost.or(self.max_cost),
            max_tokens: change.max_tokens.or(self.max_tokens),
        }
    }

    /// Returns the limits after a change of the task file. A limit that the change left alone stays
    /// in force, because the user may have set it on the command line since.
    #[must_use]
    pub fn after_task_change(&self, old: &Self, new: &Self) -> Self {
        fn pick<T: Copy + PartialEq>(now: Option<T>, old: Option<T>, new: Option<T>) -> Option<T> {
            if old == new { now } else { new }
        }
        Self {
            max_iterations: pick(self.max_iterations, old.max_iterations, new.max_iterations),
            max_wall_time: pick(self.max_wall_time, old.max_wall_time, new.max_wall_time),
            max_cost: pick(self.max_cost, old.max_cost, new.max_cost),
            max_tokens: pick(self.max_tokens, old.max_tokens, new.max_tokens),
        }
    }
}

/// The spending of a run so far. It never decreases, even across crashes and restarts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Iterations that were started.
    pub iterations: u32,
    /// Excludes pauses.
    pub wall_time: Duration,
    /// Cost of all model calls, including abandoned ones.
    pub cost: Usd,
    /// Input and output tokens of all model calls.
    pub tokens: u64,
}

/// One of the budgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    /// `max_iterations`.
    Iterations,
    /// `max_wall_time_minutes`.
    WallTime,
    /// `max_cost_usd_estimate`.
    Cost,
    /// `max_tokens_total`.
    Tokens,
}

impl Budget {
    /// All budgets, in display order.
    pub const ALL: [Self; 4] = [Self::Iterations, Self::WallTime, Self::Cost, Self::Tokens];

    /// Returns the front matter key that sets this budget.
    pub fn key(self) -> &'static str {
        match self {
            Self::Iterations => "max_iterations",
            Self::WallTime => "max_wall_time_minutes",
            Self::Cost => "max_cost_usd_estimate",
            Self::Tokens => "max_tokens_total",
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Iterations => "iterations",
            Self::WallTime => "wall time",
            Self::Cost => "cost",
            Self::Tokens => "tokens",
        })
    }
}

/// How much of one budget is used.
#[derive(Debug, Clone, PartialEq)]
pub struct BudgetUse {
    pub budget: Budget,
    /// The fraction in use; 1.0 is the whole budget, more is possible.
    pub share: f64,
    /// Formatted for display: `3`, `12m`, `$0.40`.
    pub used: String,
    pub limit: String,
    pub remaining: String,
}

/// Returns the use of every budget that is set.
#[expect(
    clippy::cast_precision_loss,
    reason = "only for display; the limits themselves are compared as integers"
)]
pub fn budget_uses(limits: &BudgetLimits, spent: &Spent) -> Vec<BudgetUse> {
    let mut uses = Vec::new();
    if let Some(limit) = limits.max_iterations {
        uses.push(BudgetUse {
            budget: Budget::Iterations,
            share: used_share(f64::from(spent.iterations), f64::from(limit)),
            used: spent.iterations.to_string(),
            limit: limit.to_string(),
            remaining: limit.saturating_sub(spent.iterations).to_string(),
        });
    }
    if let Some(limit) = limits.max_wall_time {
        uses.push(BudgetUse {
            budget: Budget::WallTime,
            share: used_share(spent.wall_time.as_secs_f64(), limit.as_secs_f64()),
            used: format_minutes(spent.wall_time),
            limit: format_minutes(limit),
            remaining: format_minutes(limit.saturating_sub(spent.wall_time)),
        });
    }
    if let Some(limit) = limits.max_cost {
        uses.push(BudgetUse {
            budget: Budget::Cost,
            share: used_share(spent.cost.dollars(), limit.dollars()),
            used: spent.cost.to_string(),
            limit: limit.to_string(),
            remaining: Usd::from_nanos(limit.nanos().saturating_sub(spent.cost.nanos()))
                .to_string(),
        });
    }
    if let Some(limit) = limits.max_tokens {
        uses.push(BudgetUse {
            budget: Budget::Tokens,
            share: used_share(spent.tokens as f64, limit as f64),
            used: spent.tokens.to_string(),
            limit: limit.to_string(),
            remaining: limit.saturating_sub(spent.tokens).to_string(),
        });
    }
    uses
}

fn used_share(used: f64, limit: f64) -> f64 {
    if limit <= 0.0 { 1.0 } else { used / limit }
}

/// Formats a duration in whole minutes, or in seconds below one minute.
pub fn format_minutes(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 {
        format!("{seconds}s")
    } else {
        format!("{}m", seconds / 60)
    }
}

/// Returns the first budget that is used up. The engine checks it before each iteration, model
/// call and action.
///
/// Never returns `Iterations`: an iteration counts when it starts, so the running one is within
/// the budget. [`may_start_iteration`] checks that budget.
pub fn exhausted(limits: &BudgetLimits, spent: &Spent) -> Option<Budget> {
    let over = |limit: Option<bool>| limit.unwrap_or(false);
    if over(limits.max_wall_time.map(|limit| spent.wall_time >= limit)) {
        Some(Budget::WallTime)
    } else if over(limits.max_cost.map(|limit| spent.cost >= limit)) {
        Some(Budget::Cost)
    } else if over(limits.max_tokens.map(|limit| spent.tokens >= limit)) {
        Some(Budget::Tokens)
    } else {
        None
    }
}

/// Checks whether another iteration may start; the error is the budget that forbids it.
pub fn may_start_iteration(limits: &BudgetLimits, spent: &Spent) -> Result<(), Budget> {
    if limits
        .max_iterations
        .is_some_and(|limit| spent.iterations >= limit)
    {
        return Err(Budget::Iterations);
    }
    exhausted(limits, spent).map_or(Ok(()), Err)
}

/// The smallest output allowance, in tokens, for which a model call is worthwhile.
pub const MIN_OUTPUT_TOKENS: u64 = 256;

/// Returns the number of output tokens that a model call may use, at most `wanted`.
///
/// Past spending plus the worst-case cost of the call stays within the limits. The error is the
/// budget that cannot cover the input and [`MIN_OUTPUT_TOKENS`].
pub fn max_output_tokens(
    limits: &BudgetLimits,
    spent: &Spent,
    price: &Price,
    input_tokens: u64,
    wanted: u64,
) -> Result<u64, Budget> {
    let by_cost = limits.max_cost.map(|limit| {
        let left = limit.saturating_sub(spent.cost);
        price::affordable_output(price, input_tokens, left)
    });
    let by_tokens = limits.max_tokens.map(|limit| {
        let left = limit.saturating_sub(spent.tokens);
        left.checked_sub(input_tokens)
    });
    let mut output = wanted;
    for (budget, affordable) in [(Budget::Cost, by_cost), (Budget::Tokens, by_tokens)] {
        // The outer `None` is an unset budget, the inner one a budget that the input exceeds.
        let Some(affordable) = affordable else {
            continue;
        };
        output = output.min(affordable.unwrap_or(0));
        if output < MIN_OUTPUT_TOKENS.min(wanted) {
            return Err(budget);
        }
    }
    Ok(output)
}

/// The thresholds at which a warning is issued, in percent.
pub const WARN_PERCENTAGES: [u8; 2] = [80, 95];

/// Returns the warnings due when spending rises from `before` to `after`: for each budget, the
/// highest threshold it crossed.
pub fn warnings(limits: &BudgetLimits, before: &Spent, after: &Spent) -> Vec<(Budget, u8)> {
    let earlier = budget_uses(limits, before);
    budget_uses(limits, after)
        .into_iter()
        .filter_map(|now| {
            let share_before = earlier.iter().find(|use_| use_.budget == now.budget)?.share;
            let is_crossed = |percent: &u8| {
                let threshold = f64::from(*percent) / 100.0;
                share_before < threshold && now.share >= threshold
            };
            WARN_PERCENTAGES
                .into_iter()
                .rev()
                .find(is_crossed)
                .map(|percent| (now.budget, percent))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> BudgetLimits {
        BudgetLimits {
            max_iterations: Some(10),
            max_wall_time: Some(Duration::from_hours(2)),
            max_cost: Usd::from_dollars(10.0),
            max_tokens: Some(1000),
        }
    }

    #[test]
    fn a_budget_is_used_up_when_its_limit_is_reached() {
        let mut spent = Spent::default();
        assert_eq!(exhausted(&limits(), &spent), None);
        spent.tokens = 999;
        assert_eq!(exhausted(&limits(), &spent), None);
        spent.tokens = 1000;
        assert_eq!(exhausted(&limits(), &spent), Some(Budget::Tokens));
        spent.cost = Usd::from_dollars(10.0).unwrap();
        assert_eq!(exhausted(&limits(), &spent), Some(Budget::Cost));
        spent.wall_time = Duration::from_hours(2);
        assert_eq!(exhausted(&limits(), &spent), Some(Budget::WallTime));
    }

    #[test]
    fn the_last_iteration_may_finish_but_no_other_may_start() {
        let spent = Spent {
            iterations: 10,
            ..Spent::default()
        };
        assert_eq!(exhausted(&limits(), &spent), None);
        assert_eq!(
            may_start_iteration(&limits(), &spent),
            Err(Budget::Iterations)
        );
        let spent = Spent {
            iterations: 9,
            ..Spent::default()
        };
        assert_eq!(may_start_iteration(&limits(), &spent), Ok(()));
    }

    #[test]
    fn output_is_limited_by_the_remaining_budget() {
        let price = Price {
            input: Usd::from_dollars(1.0).unwrap(),
            output: Usd::from_dollars(10.0).unwrap(),
            ..Price::default()
        };
        let within = |cost: Option<f64>, tokens: Option<u64>, wanted| {
            let limits = BudgetLimits {
                max_cost: cost.and_then(Usd::from_dollars),
                max_tokens: tokens,
                ..BudgetLimits::default()
            };
            let spent = Spent {
                cost: Usd::from_dollars(1.0).unwrap(),
                tokens: 1000,
                ..Spent::default()
            };
            max_output_tokens(&limits, &spent, &price, 10_000, wanted)
        };
        assert_eq!(within(None, None, 8000), Ok(8000));
        assert_eq!(within(Some(1.1), None, 8000), Ok(8000));
        assert_eq!(within(Some(1.06), None, 8000), Ok(5000));
        assert_eq!(within(Some(1.011), None, 8000), Err(Budget::Cost));
        assert_eq!(within(Some(1.0), None, 8000), Err(Budget::Cost));
        assert_eq!(within(None, Some(12_000), 8000), Ok(1000));
        assert_eq!(within(None, Some(11_000), 8000), Err(Budget::Tokens));
        assert_eq!(within(Some(1.06), Some(12_000), 8000), Ok(1000));
        assert_eq!(within(None, Some(11_100), 100), Ok(100));
    }

    #[test]
    fn each_threshold_warns_once_and_a_jump_reports_the_highest() {
        let at = |tokens| Spent {
            tokens,
            ..Spent::default()
        };
        assert_eq!(warnings(&limits(), &at(0), &at(799)), []);
        assert_eq!(
            warnings(&limits(), &at(799), &at(800)),
            [(Budget::Tokens, 80)]
        );
        assert_eq!(warnings(&limits(), &at(800), &at(949)), []);
        assert_eq!(
            warnings(&limits(), &at(949), &at(950)),
            [(Budget::Tokens, 95)]
        );
        assert_eq!(
            warnings(&limits(), &at(0), &at(2000)),
            [(Budget::Tokens, 95)]
        );
    }

    #[test]
    fn a_change_replaces_only_the_limits_that_it_sets() {
        let change = BudgetLimits {
            max_iterations: Some(40),
            ..BudgetLimits::default()
        };
        let changed = limits().changed_by(&change);
        let expected = BudgetLimits {
            max_iterations: Some(40),
            ..limits()
        };
        assert_eq!(changed, expected);
        assert!(change.sets(Budget::Iterations) && !change.sets(Budget::Cost));
        assert!(BudgetLimits::default().is_empty() && !change.is_empty());
    }

    #[test]
    fn a_changed_task_file_keeps_limits_of_the_command_line_that_it_does_not_mention() {
        let in_force = BudgetLimits {
            max_iterations: Some(40),
            max_tokens: Some(9_000),
            ..limits()
        };
        let new = BudgetLimits {
            max_tokens: Some(5_000),
            max_cost: None,
            ..limits()
        };
        let after = in_force.after_task_change(&limits(), &new);
        let expected = BudgetLimits {
            max_iterations: Some(40),
            max_tokens: Some(5_000),
            max_cost: None,
            ..limits()
        };
        assert_eq!(after, expected);
    }

    #[test]
    fn an_unset_budget_never_stops_a_run() {
        let spent = Spent {
            iterations: 1_000,
            tokens: u64::MAX,
            ..Spent::default()
        };
        assert_eq!(
            may_start_iteration(&BudgetLimits::default(), &spent),
            Ok(())
        );
        assert_eq!(budget_uses(&BudgetLimits::default(), &spent), []);
    }
}
