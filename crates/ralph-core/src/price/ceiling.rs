//! The most that a call can cost before it is made, for reservations.

use super::{Price, cost};
use crate::money::Usd;
use crate::ports::Usage;

const MILLION: u128 = 1_000_000;

/// The most tokens that a model takes and writes in one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Input tokens, cached ones included.
    pub max_input: u64,
    /// Output tokens, hidden reasoning included.
    pub max_output: u64,
}

/// Returns the most that a call costs whose input and output stay within these token counts, rounded
/// up. [`cost`](super::cost) never exceeds it, however the input divides into fresh, cached and newly
/// cached tokens.
pub fn highest_cost(price: &Price, input_tokens: u64, output_tokens: u64) -> Usd {
    let (input, output) = rates(price, input_tokens);
    let total = product(input_tokens, input).saturating_add(product(output_tokens, output));
    Usd::from_nanos(u64::try_from(total.div_ceil(MILLION)).unwrap_or(u64::MAX))
}

/// Returns the usage within these token counts that costs the most: the input may be fresh, read from a
/// cache, or written to one.
pub fn worst_usage(price: &Price, input_tokens: u64, output_tokens: u64) -> Usage {
    let fresh = Usage {
        input_tokens,
        output_tokens,
        ..Usage::default()
    };
    let read = Usage {
        cache_read_tokens: input_tokens,
        ..fresh
    };
    let written = Usage {
        cache_write_tokens: input_tokens,
        ..fresh
    };
    let dearer = |one: Usage, other: Usage| {
        if cost(price, &other) > cost(price, &one) {
            other
        } else {
            one
        }
    };
    dearer(dearer(fresh, read), written)
}

/// Returns how many output tokens an amount pays for after the input is paid; none if it does not pay
/// for the input.
pub fn affordable_output(price: &Price, input_tokens: u64, left: Usd) -> Option<u64> {
    let (input, output) = rates(price, input_tokens);
    let left = u128::from(left.nanos()) * MILLION;
    let rest = left.checked_sub(product(input_tokens, input))?;
    let tokens = rest.checked_div(u128::from(output.nanos()));
    Some(tokens.map_or(u64::MAX, |tokens| u64::try_from(tokens).unwrap_or(u64::MAX)))
}

/// Returns the highest rates that a call with at most this much input is billed at.
fn rates(price: &Price, input_tokens: u64) -> (Usd, Usd) {
    [price.for_prompt(0), price.for_prompt(input_tokens)]
        .into_iter()
        .fold((Usd::ZERO, Usd::ZERO), |(input, output), price| {
            let cached = price.cache_read.max(price.cache_write);
            let highest = price.input.max(cached.unwrap_or_default());
            (input.max(highest), output.max(price.output))
        })
}

fn product(tokens: u64, rate: Usd) -> u128 {
    u128::from(tokens) * u128::from(rate.nanos())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::price::{PriceBook, highest, known};

    /// A small deterministic generator: the property is checked on the same calls every time.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % limit.max(1)
        }
    }

    #[test]
    fn no_usage_within_the_bounds_costs_more_than_the_ceiling() {
        let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
        let names: Vec<String> = include_str!("prices.txt")
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
            .collect();
        for round in 0..20_000 {
            let name = &names[round % names.len()];
            let price = PriceBook::embedded().price(name).unwrap_or_else(highest);
            let (most_input, most_output) = (numbers.below(600_000), numbers.below(200_000));
            let input_tokens = numbers.below(most_input + 1);
            let cache_read_tokens = numbers.below(input_tokens + 1);
            let usage = Usage {
                input_tokens,
                output_tokens: numbers.below(most_output + 1),
                cache_read_tokens,
                cache_write_tokens: numbers.below(input_tokens - cache_read_tokens + 1),
            };
            let ceiling = highest_cost(&price, most_input, most_output);
            assert!(cost(&price, &usage) <= ceiling, "{name} {usage:?}");
            let worst = worst_usage(&price, most_input, most_output);
            assert!(
                cost(&price, &usage) <= cost(&price, &worst),
                "{name} {usage:?}"
            );
            assert!(cost(&price, &worst) <= ceiling, "{name}");
            let left = Usd::from_nanos(numbers.below(2_000_000_000));
            let Some(output) = affordable_output(&price, most_input, left) else {
                assert!(highest_cost(&price, most_input, 0) > left, "{name}");
                continue;
            };
            if output < u64::MAX {
                assert!(highest_cost(&price, most_input, output) <= left, "{name}");
                assert!(
                    highest_cost(&price, most_input, output + 1) > left,
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn the_price_of_long_prompts_counts_as_soon_as_the_input_may_be_that_long() {
        let price = known("gemini/gemini-2.5-pro").unwrap();
        let cents = |input| highest_cost(&price, input, 1_000_000).dollars();
        assert!((cents(200_000) - 10.25).abs() < 1e-9, "{}", cents(200_000));
        assert!(
            (cents(200_001) - 15.500_002_5).abs() < 1e-9,
            "{}",
            cents(200_001)
        );
    }

    #[test]
    fn a_free_model_is_affordable_without_money() {
        let output = affordable_output(&Price::FREE, u64::MAX, Usd::ZERO);
        assert_eq!(output, Some(u64::MAX));
    }
}
