//! The flags that set the budgets of a run.

use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use ralph_core::budget::BudgetLimits;
use ralph_core::money::Usd;

use ralph_app::duration;

/// Budgets that replace those of the task.
#[derive(Debug, Clone, Args)]
pub(super) struct BudgetArgs {
    /// Allow this many iterations
    #[arg(long = "max-iterations", value_name = "N", value_parser = parse_count::<u32>)]
    pub iterations: Option<u32>,
    /// Allow this cost of model calls in US dollars, such as 20 or 2.50
    #[arg(long = "max-cost", value_name = "USD", value_parser = parse_dollars)]
    pub cost: Option<Usd>,
    /// Allow this much active time, such as 3h or 90m
    #[arg(long = "max-time", value_name = "DURATION", value_parser = parse_time)]
    pub time: Option<Duration>,
    /// Allow this many input and output tokens
    #[arg(long = "max-tokens", value_name = "N", value_parser = parse_count::<u64>)]
    pub tokens: Option<u64>,
}

impl BudgetArgs {
    /// Returns the budgets that the flags set.
    pub(super) fn limits(&self) -> BudgetLimits {
        BudgetLimits {
            max_iterations: self.iterations,
            max_wall_time: self.time,
            max_cost: self.cost,
            max_tokens: self.tokens,
        }
    }
}

fn parse_count<N: FromStr + Default + PartialOrd>(text: &str) -> Result<N, String> {
    match text.parse() {
        Ok(count) if count > N::default() => Ok(count),
        Ok(_) | Err(_) => Err("expected a whole number above 0, such as `40`".to_owned()),
    }
}

fn parse_dollars(text: &str) -> Result<Usd, String> {
    let invalid = || "expected an amount above 0, such as `20` or `2.50`".to_owned();
    let dollars: f64 = text.parse().map_err(|_| invalid())?;
    Usd::from_dollars(dollars)
        .filter(|amount| *amount > Usd::ZERO)
        .ok_or_else(invalid)
}

fn parse_time(text: &str) -> Result<Duration, String> {
    let time = duration::parse(text)?;
    if time.is_zero() {
        return Err("expected a time above 0, such as `90m`".to_owned());
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_and_times_are_above_zero() {
        assert_eq!(parse_dollars("2.50"), Ok(Usd::from_nanos(2_500_000_000)));
        for text in ["", "0", "-1", "NaN", "inf", "1e12", "$5", "5 USD"] {
            assert!(parse_dollars(text).is_err(), "{text}");
        }
        assert_eq!(parse_count("40"), Ok(40_u32));
        for text in ["", "0", "-1", "1.5", "5000000000"] {
            let error = parse_count::<u32>(text).unwrap_err();
            assert_eq!(error, "expected a whole number above 0, such as `40`");
        }
        assert_eq!(parse_time("90m"), Ok(Duration::from_mins(90)));
        for text in ["0", "0h", "x"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }
}
