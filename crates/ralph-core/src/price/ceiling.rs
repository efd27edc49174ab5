//! Upper bounds of a call's cost, for reservations.

use serde::{Deserialize, Serialize};

use super::{Price, cost};
use crate::money::Usd;
use crate::ports::TokenUsage;

const MILLION: u128 = 1_000_000;

/// Maximum number of input and output tokens in one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenWindow {
    /// Including cached tokens.
    pub max_input: u64,
    /// Including hidden reasoning.
    pub max_output: u64,
}

/// Returns the highest possible cost of a call within these token counts, rounded up.
/// [`cost`](super::cost) never exceeds it, however the input divides into fresh, cached and newly
/// cached tokens, and the output into text and reasoning.
pub fn highest_cost(price: &Price, input_tokens: u64, output_tokens: u64) -> Usd {
    let (input, output) = rates(price, input_tokens);
    let total = product(input_tokens, input).saturating_add(product(output_tokens, output));
    Usd::from_nanos(u64::try_from(total.div_ceil(MILLION)).unwrap_or(u64::MAX))
}

/// Returns the most expensive usage within these token counts: the input may be fresh, read from a
/// cache or written to one, and the output may be text or reasoning.
pub fn worst_usage(price: &Price, input_tokens: u64, output_tokens: u64) -> TokenUsage {
    // A shorter prompt costs more only if a price falls with the length.
    std::iter::once(input_tokens)
        .chain(price.limits_below(input_tokens))
        .flat_map(billable_inputs)
        .map(|input| with_worst_output(price, input, output_tokens))
        .reduce(|one, other| {
            let is_higher = cost(price, &other) > cost(price, &one);
            if is_higher { other } else { one }
        })
        .unwrap_or_default()
}

/// Adds the most expensive output of this many tokens to a call's input.
pub fn with_worst_output(price: &Price, input: TokenUsage, output_tokens: u64) -> TokenUsage {
    let rates = price.rates(input.input_tokens);
    let is_higher = rates.reasoning > rates.output;
    TokenUsage {
        output_tokens,
        reasoning_tokens: if is_higher { output_tokens } else { 0 },
        ..input
    }
}

/// Returns the ways in which a call's input can be billed.
fn billable_inputs(input_tokens: u64) -> [TokenUsage; 4] {
    let fresh = TokenUsage {
        input_tokens,
        ..TokenUsage::default()
    };
    let written = TokenUsage {
        cache_write_tokens: input_tokens,
        ..fresh
    };
    [
        fresh,
        TokenUsage {
            cache_read_tokens: input_tokens,
            ..fresh
        },
        written,
        TokenUsage {
            cache_write_1h_tokens: input_tokens,
            ..written
        },
    ]
}

/// Returns how many output tokens an amount pays for after the input is paid; `None` if it does not
/// cover the input.
pub fn affordable_output(price: &Price, input_tokens: u64, left: Usd) -> Option<u64> {
    let (input, output) = rates(price, input_tokens);
    let left = u128::from(left.nanos()) * MILLION;
    let rest = left.checked_sub(product(input_tokens, input))?;
    let tokens = rest.checked_div(u128::from(output.nanos()));
    Some(tokens.map_or(u64::MAX, |tokens| u64::try_from(tokens).unwrap_or(u64::MAX)))
}

/// Returns the highest rates of a call with at most this much input.
fn rates(price: &Price, input_tokens: u64) -> (Usd, Usd) {
    let highest = (Usd::ZERO, Usd::ZERO);
    price
        .rates_up_to(input_tokens)
        .fold(highest, |(input, output), rates| {
            let (highest_input, highest_output) = (rates.highest_input(), rates.highest_output());
            (input.max(highest_input), output.max(highest_output))
        })
}

fn product(tokens: u64, rate: Usd) -> u128 {
    u128::from(tokens) * u128::from(rate.nanos())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::price::{PriceBook, PriceTier, embedded_price};

    /// A small deterministic generator, so that every run tests the same calls.
    struct PriceTestRng(u64);

    impl PriceTestRng {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % limit.max(1)
        }
    }

    fn usd(numbers: &mut PriceTestRng) -> Usd {
        Usd::from_nanos(numbers.below(20_000_000_000))
    }

    fn some_usd(numbers: &mut PriceTestRng) -> Option<Usd> {
        (numbers.below(2) == 0).then(|| usd(numbers))
    }

    fn tier(numbers: &mut PriceTestRng, above_tokens: u64) -> PriceTier {
        PriceTier {
            above_tokens,
            input: usd(numbers),
            output: usd(numbers),
            cache_read: some_usd(numbers),
            cache_write: some_usd(numbers),
            cache_write_1h: some_usd(numbers),
            reasoning: some_usd(numbers),
        }
    }

    fn price(numbers: &mut PriceTestRng) -> Price {
        let base = tier(numbers, 0);
        let most = 100_000 * numbers.below(5);
        let mut level = |limit| Some(tier(numbers, limit)).filter(|_| limit <= most);
        Price {
            input: base.input,
            output: base.output,
            cache_read: base.cache_read,
            cache_write: base.cache_write,
            cache_write_1h: base.cache_write_1h,
            reasoning: base.reasoning,
            tier: level(100_000),
            higher_tiers: [200_000, 300_000, 400_000].map(level),
        }
    }

    fn usage(numbers: &mut PriceTestRng, most_input: u64, most_output: u64) -> TokenUsage {
        let input_tokens = numbers.below(most_input + 1);
        let output_tokens = numbers.below(most_output + 1);
        let cache_read_tokens = numbers.below(input_tokens + 1);
        let cache_write_tokens = numbers.below(input_tokens - cache_read_tokens + 1);
        TokenUsage {
            input_tokens,
            output_tokens,
            cache_read_tokens,
            cache_write_tokens,
            cache_write_1h_tokens: numbers.below(cache_write_tokens + 1),
            reasoning_tokens: numbers.below(output_tokens + 1),
        }
    }

    /// Tests every embedded price and as many unrealistic ones: cheaper tiers, expensive reasoning.
    #[test]
    fn no_usage_within_the_bounds_costs_more_than_the_ceiling() {
        let mut numbers = PriceTestRng(0x9e37_79b9_7f4a_7c15);
        let known: Vec<Price> = PriceBook::embedded()
            .prices()
            .map(|(_, price)| *price)
            .collect();
        for round in 0..40_000 {
            let price = match known.get(round % (2 * known.len())) {
                Some(price) => *price,
                None => price(&mut numbers),
            };
            let (most_input, most_output) = (numbers.below(600_000), numbers.below(200_000));
            let usage = usage(&mut numbers, most_input, most_output);
            let ceiling = highest_cost(&price, most_input, most_output);
            assert!(cost(&price, &usage) <= ceiling, "{price:?} {usage:?}");
            let worst = worst_usage(&price, most_input, most_output);
            assert!(cost(&price, &worst) <= ceiling, "{price:?}");
            assert!(
                cost(&price, &usage) <= cost(&price, &worst),
                "{price:?} {usage:?} {worst:?}"
            );
            let counted = with_worst_output(&price, usage, most_output);
            assert!(
                cost(&price, &usage) <= cost(&price, &counted),
                "{price:?} {usage:?}"
            );
            assert!(cost(&price, &counted) <= ceiling, "{price:?} {usage:?}");
            let left = Usd::from_nanos(numbers.below(2_000_000_000));
            let Some(output) = affordable_output(&price, most_input, left) else {
                assert!(highest_cost(&price, most_input, 0) > left, "{price:?}");
                continue;
            };
            if output < u64::MAX {
                assert!(
                    highest_cost(&price, most_input, output) <= left,
                    "{price:?}"
                );
                assert!(
                    highest_cost(&price, most_input, output + 1) > left,
                    "{price:?}"
                );
            }
        }
    }

    #[test]
    fn the_ceiling_uses_the_long_prompt_price_if_the_input_may_be_long() {
        let price = embedded_price("gemini/gemini-2.5-pro").unwrap();
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
