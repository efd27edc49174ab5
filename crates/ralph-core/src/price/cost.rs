//! Token prices and the cost of a call.

use serde::{Deserialize, Serialize};

use crate::money::Usd;
use crate::ports::TokenUsage;

/// Prices per million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    pub input: Usd,
    pub output: Usd,
    /// Price of cached input; defaults to the input price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<Usd>,
    /// Price of input that is written to a cache; defaults to the input price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<Usd>,
    /// Price of input that is written to a cache for an hour; defaults to `cache_write`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<Usd>,
    /// Price of reasoning, which is part of the output; defaults to the output price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Usd>,
    /// Prices of long prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<PriceTier>,
    /// Prices of even longer prompts, ordered by their limits.
    #[serde(default, skip_serializing_if = "no_tiers")]
    pub higher_tiers: [Option<PriceTier>; Price::MAX_TIERS - 1],
}

/// Prices per million tokens of a call with a long prompt; they apply to all of its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriceTier {
    /// The longest prompt that this tier does not apply to, in tokens.
    pub above_tokens: u64,
    pub input: Usd,
    pub output: Usd,
    /// Price of cached input; defaults to the input price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<Usd>,
    /// Price of input that is written to a cache; defaults to the input price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<Usd>,
    /// Price of input that is written to a cache for an hour; defaults to `cache_write`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<Usd>,
    /// Price of reasoning; defaults to the output price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Usd>,
}

fn no_tiers(tiers: &[Option<PriceTier>; Price::MAX_TIERS - 1]) -> bool {
    tiers.iter().all(Option::is_none)
}

/// The prices of every kind of token in one call, with defaults filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PriceRates {
    pub(super) input: Usd,
    pub(super) output: Usd,
    pub(super) cache_read: Usd,
    pub(super) cache_write: Usd,
    pub(super) cache_write_1h: Usd,
    pub(super) reasoning: Usd,
}

impl From<PriceRates> for Price {
    fn from(rates: PriceRates) -> Self {
        Self {
            input: rates.input,
            output: rates.output,
            cache_read: Some(rates.cache_read),
            cache_write: Some(rates.cache_write),
            cache_write_1h: Some(rates.cache_write_1h),
            reasoning: Some(rates.reasoning),
            ..Self::FREE
        }
    }
}

impl PriceRates {
    /// Returns the maximum of each price.
    pub(super) fn max(self, other: Self) -> Self {
        Self {
            input: self.input.max(other.input),
            output: self.output.max(other.output),
            cache_read: self.cache_read.max(other.cache_read),
            cache_write: self.cache_write.max(other.cache_write),
            cache_write_1h: self.cache_write_1h.max(other.cache_write_1h),
            reasoning: self.reasoning.max(other.reasoning),
        }
    }

    /// Returns the highest price of an input token.
    pub(super) fn highest_input(&self) -> Usd {
        let cached = self.cache_read.max(self.cache_write);
        self.input.max(cached).max(self.cache_write_1h)
    }

    /// Returns the highest price of an output token.
    pub(super) fn highest_output(&self) -> Usd {
        self.output.max(self.reasoning)
    }
}

impl Price {
    /// Maximum number of tiers in a price.
    pub const MAX_TIERS: usize = 4;

    /// The price of models that read replies from a file.
    pub const FREE: Self = Self {
        input: Usd::ZERO,
        output: Usd::ZERO,
        cache_read: None,
        cache_write: None,
        cache_write_1h: None,
        reasoning: None,
        tier: None,
        higher_tiers: [None; Self::MAX_TIERS - 1],
    };

    fn tiers(&self) -> impl DoubleEndedIterator<Item = &PriceTier> {
        self.tier.iter().chain(self.higher_tiers.iter().flatten())
    }

    fn base_rates(&self) -> PriceRates {
        let cache_write = self.cache_write.unwrap_or(self.input);
        PriceRates {
            input: self.input,
            output: self.output,
            cache_read: self.cache_read.unwrap_or(self.input),
            cache_write,
            cache_write_1h: self.cache_write_1h.unwrap_or(cache_write),
            reasoning: self.reasoning.unwrap_or(self.output),
        }
    }

    /// Returns the prices of a call with this many input tokens, including cached ones.
    pub(super) fn rates(&self, input_tokens: u64) -> PriceRates {
        let mut tiers = self.tiers().rev();
        let tier = tiers.find(|tier| input_tokens > tier.above_tokens);
        tier.map_or_else(|| self.base_rates(), PriceTier::rates)
    }

    /// Returns the prices of all calls with at most this many input tokens.
    pub(super) fn rates_up_to(&self, input_tokens: u64) -> impl Iterator<Item = PriceRates> {
        let reached = move |tier: &&PriceTier| input_tokens > tier.above_tokens;
        let tiers = self.tiers().filter(reached).map(PriceTier::rates);
        std::iter::once(self.base_rates()).chain(tiers)
    }

    /// Returns the longest prompts, shorter than this one, that are billed at lower tiers.
    pub(super) fn limits_below(&self, input_tokens: u64) -> impl Iterator<Item = u64> {
        let limits = self.tiers().map(|tier| tier.above_tokens);
        limits.filter(move |limit| *limit < input_tokens)
    }
}

impl PriceTier {
    fn rates(&self) -> PriceRates {
        let cache_write = self.cache_write.unwrap_or(self.input);
        PriceRates {
            input: self.input,
            output: self.output,
            cache_read: self.cache_read.unwrap_or(self.input),
            cache_write,
            cache_write_1h: self.cache_write_1h.unwrap_or(cache_write),
            reasoning: self.reasoning.unwrap_or(self.output),
        }
    }
}

/// Returns the cost of a call, rounded once to the nearest billionth of a dollar, half up.
///
/// Cached tokens are part of the input tokens, and reasoning is part of the output tokens; both are
/// priced separately.
pub fn cost(price: &Price, usage: &TokenUsage) -> Usd {
    const MILLION: u128 = 1_000_000;
    let rates = price.rates(usage.input_tokens);
    let fresh = usage
        .input_tokens
        .saturating_sub(usage.cache_read_tokens)
        .saturating_sub(usage.cache_write_tokens);
    let written_for_an_hour = usage.cache_write_1h_tokens.min(usage.cache_write_tokens);
    let reasoning = usage.reasoning_tokens.min(usage.output_tokens);
    // Each product fits into 128 bits; only absurd sums would need more.
    let nanos_of_a_million = [
        (fresh, rates.input),
        (usage.cache_read_tokens, rates.cache_read),
        (
            usage.cache_write_tokens - written_for_an_hour,
            rates.cache_write,
        ),
        (written_for_an_hour, rates.cache_write_1h),
        (usage.output_tokens - reasoning, rates.output),
        (reasoning, rates.reasoning),
    ]
    .into_iter()
    .map(|(tokens, rate)| u128::from(tokens) * u128::from(rate.nanos()))
    .fold(MILLION / 2, u128::saturating_add);
    Usd::from_nanos(u64::try_from(nanos_of_a_million / MILLION).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, output: u64, read: u64, write: u64) -> TokenUsage {
        TokenUsage {
            input_tokens: input,
            output_tokens: output,
            cache_read_tokens: read,
            cache_write_tokens: write,
            ..TokenUsage::default()
        }
    }

    fn price(input: f64, output: f64) -> Price {
        Price {
            input: Usd::from_dollars(input).unwrap(),
            output: Usd::from_dollars(output).unwrap(),
            ..Price::default()
        }
    }

    #[test]
    fn a_call_costs_its_tokens() {
        let cached = Price {
            cache_read: Usd::from_dollars(0.1),
            cache_write: Usd::from_dollars(1.25),
            ..price(1.0, 5.0)
        };
        let tiered = Price {
            tier: Some(PriceTier {
                above_tokens: 200_000,
                input: Usd::from_dollars(2.0).unwrap(),
                output: Usd::from_dollars(10.0).unwrap(),
                cache_read: None,
                cache_write: None,
                cache_write_1h: None,
                reasoning: None,
            }),
            ..cached
        };
        for (price, usage, nanos) in [
            (price(1.0, 5.0), usage(1000, 100, 0, 0), 1_500_000),
            (cached, usage(1000, 100, 600, 300), 1_035_000),
            // Cached tokens without a price of their own cost as much as fresh ones.
            (price(1.0, 5.0), usage(1000, 100, 600, 300), 1_500_000),
            // Cached tokens beyond the input count do not lead to a negative amount.
            (cached, usage(0, 0, 1000, 0), 100_000),
            (tiered, usage(200_000, 1, 100_000, 0), 110_005_000),
            (tiered, usage(200_001, 1, 100_000, 0), 400_012_000),
            (Price::FREE, usage(1_000_000, 1_000_000, 5, 5), 0),
        ] {
            assert_eq!(cost(&price, &usage), Usd::from_nanos(nanos), "{usage:?}");
        }
    }

    #[test]
    fn the_cost_is_rounded_once_and_half_up() {
        // A third, half and two thirds of a billionth per token.
        for (per_million, tokens, nanos) in [
            (333_333, 1, 0),
            (333_333, 3, 1),
            (499_999, 1, 0),
            (500_000, 1, 1),
            (666_667, 1, 1),
        ] {
            let price = Price {
                input: Usd::from_nanos(per_million),
                output: Usd::from_nanos(per_million),
                ..Price::default()
            };
            assert_eq!(cost(&price, &usage(tokens, 0, 0, 0)).nanos(), nanos);
            assert_eq!(cost(&price, &usage(0, tokens, 0, 0)).nanos(), nanos);
        }
        let halves = Price {
            input: Usd::from_nanos(500_000),
            output: Usd::from_nanos(500_000),
            ..Price::default()
        };
        assert_eq!(cost(&halves, &usage(1, 1, 0, 0)).nanos(), 1);
    }

    #[test]
    fn many_tokens_do_not_overflow() {
        let trillion = 1_000_000_000_000;
        let total = cost(&price(15.0, 120.0), &usage(trillion, trillion, 0, 0));
        assert_eq!(total, Usd::from_nanos(135_000_000 * 1_000_000_000));
        let absurd = usage(u64::MAX, u64::MAX, u64::MAX, u64::MAX);
        assert_eq!(cost(&price(1e9, 1e9), &absurd), Usd::from_nanos(u64::MAX));
    }

    #[test]
    fn a_price_is_serialized_in_dollars() {
        let text = r#"{"input":0.6,"output":2.2,"cache_read":0.11}"#;
        let price: Price = serde_json::from_str(text).unwrap();
        assert_eq!(price.cache_read, Some(Usd::from_nanos(110_000_000)));
        assert_eq!(serde_json::to_string(&price).unwrap(), text);
    }

    #[test]
    fn reasoning_and_one_hour_cache_writes_are_priced_separately() {
        let own = Price {
            cache_write: Usd::from_dollars(1.25),
            cache_write_1h: Usd::from_dollars(2.0),
            reasoning: Usd::from_dollars(20.0),
            ..price(1.0, 5.0)
        };
        let used = TokenUsage {
            cache_write_1h_tokens: 100,
            reasoning_tokens: 60,
            ..usage(1000, 100, 0, 300)
        };
        // 700 fresh, 200 written, 100 written for an hour, 40 text, 60 reasoning.
        let nanos = 700_000 + 250_000 + 200_000 + 200_000 + 1_200_000;
        assert_eq!(cost(&own, &used), Usd::from_nanos(nanos));
        // Without separate prices they cost as much as ordinary writes and output.
        let plain = Price {
            cache_write_1h: None,
            reasoning: None,
            ..own
        };
        let nanos = 700_000 + 375_000 + 500_000;
        assert_eq!(cost(&plain, &used), Usd::from_nanos(nanos));
        // Reasoning is limited to the output, and one-hour writes are limited to all writes.
        let absurd = TokenUsage {
            cache_write_1h_tokens: u64::MAX,
            reasoning_tokens: u64::MAX,
            ..usage(10, 10, 0, 10)
        };
        assert_eq!(cost(&own, &absurd), Usd::from_nanos(20_000 + 200_000));
    }

    #[test]
    fn the_highest_tier_that_a_prompt_exceeds_applies() {
        let tier = |above_tokens, dollars| {
            let price = price(dollars, 0.0);
            PriceTier {
                above_tokens,
                input: price.input,
                output: price.output,
                cache_read: None,
                cache_write: None,
                cache_write_1h: None,
                reasoning: None,
            }
        };
        let tiered = Price {
            tier: Some(tier(32_000, 2.0)),
            higher_tiers: [Some(tier(128_000, 3.0)), Some(tier(256_000, 6.0)), None],
            ..price(1.0, 0.0)
        };
        for (tokens, dollars) in [
            (32_000, 0.032),
            (32_001, 0.064_002),
            (128_000, 0.256),
            (128_001, 0.384_003),
            (256_001, 1.536_006),
            (1_000_000, 6.0),
        ] {
            let cost = cost(&tiered, &usage(tokens, 0, 0, 0));
            assert_eq!(Some(cost), Usd::from_dollars(dollars), "{tokens}");
        }
        let text = serde_json::to_string(&tiered).unwrap();
        assert_eq!(serde_json::from_str::<Price>(&text).unwrap(), tiered);
        // A plan of an older version has at most one tier.
        let old = r#"{"input":1,"output":0,"tier":{"above_tokens":32000,"input":2,"output":0}}"#;
        let old: Price = serde_json::from_str(old).unwrap();
        assert_eq!(
            cost(&old, &usage(1_000_000, 0, 0, 0)).nanos(),
            2_000_000_000
        );
    }
}
