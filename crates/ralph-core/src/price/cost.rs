//! The price of tokens, and the sum of a call.

use serde::{Deserialize, Serialize};

use crate::money::Usd;
use crate::ports::Usage;

/// What a million tokens cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// Of the prompt.
    pub input: Usd,
    /// Of the answer.
    pub output: Usd,
    /// Of the part of the prompt that is read from a cache; without one, as the rest of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<Usd>,
    /// Of the part of the prompt that is written to a cache; without one, as the rest of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<Usd>,
    /// What long prompts cost instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
}

/// What a million tokens cost in a call with a long prompt, all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tier {
    /// The longest prompt that this is not for, in tokens.
    pub above_tokens: u64,
    /// Of the prompt.
    pub input: Usd,
    /// Of the answer.
    pub output: Usd,
    /// Of the part of the prompt that is read from a cache; without one, as the rest of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<Usd>,
    /// Of the part of the prompt that is written to a cache; without one, as the rest of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<Usd>,
}

impl Price {
    /// The price of models that answer from a file.
    pub const FREE: Self = Self {
        input: Usd::ZERO,
        output: Usd::ZERO,
        cache_read: None,
        cache_write: None,
        tier: None,
    };

    /// Returns the price of a call whose prompt has so many tokens, without tiers.
    #[must_use]
    pub fn for_prompt(self, input_tokens: u64) -> Self {
        match self.tier {
            Some(tier) if input_tokens > tier.above_tokens => Self {
                input: tier.input,
                output: tier.output,
                cache_read: tier.cache_read,
                cache_write: tier.cache_write,
                tier: None,
            },
            Some(_) | None => Self { tier: None, ..self },
        }
    }
}

/// Returns what a call costs, rounded once to the nearest billionth of a dollar, half up.
///
/// Cached tokens are part of the input tokens and are priced apart from the rest.
pub fn cost(price: &Price, usage: &Usage) -> Usd {
    const MILLION: u128 = 1_000_000;
    let price = price.for_prompt(usage.input_tokens);
    let fresh = usage
        .input_tokens
        .saturating_sub(usage.cache_read_tokens)
        .saturating_sub(usage.cache_write_tokens);
    // Each product has at most 128 bits; only absurd sums would need more.
    let nanos_of_a_million = [
        (fresh, price.input),
        (
            usage.cache_read_tokens,
            price.cache_read.unwrap_or(price.input),
        ),
        (
            usage.cache_write_tokens,
            price.cache_write.unwrap_or(price.input),
        ),
        (usage.output_tokens, price.output),
    ]
    .into_iter()
    .map(|(tokens, rate)| u128::from(tokens) * u128::from(rate.nanos()))
    .fold(MILLION / 2, u128::saturating_add);
    Usd::from_nanos(u64::try_from(nanos_of_a_million / MILLION).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::price::known;

    fn usage(input: u64, output: u64, read: u64, write: u64) -> Usage {
        Usage {
            input_tokens: input,
            output_tokens: output,
            cache_read_tokens: read,
            cache_write_tokens: write,
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
            tier: Some(Tier {
                above_tokens: 200_000,
                input: Usd::from_dollars(2.0).unwrap(),
                output: Usd::from_dollars(10.0).unwrap(),
                cache_read: None,
                cache_write: None,
            }),
            ..cached
        };
        for (price, usage, nanos) in [
            (price(1.0, 5.0), usage(1000, 100, 0, 0), 1_500_000),
            (cached, usage(1000, 100, 600, 300), 1_035_000),
            // Without a price of their own, cached tokens are ordinary ones.
            (price(1.0, 5.0), usage(1000, 100, 600, 300), 1_500_000),
            // A provider that counts cached tokens apart from the input is not given a credit.
            (cached, usage(0, 0, 1000, 0), 100_000),
            (tiered, usage(200_000, 1, 100_000, 0), 110_005_000),
            (tiered, usage(200_001, 1, 100_000, 0), 400_012_000),
            (Price::FREE, usage(1_000_000, 1_000_000, 5, 5), 0),
        ] {
            assert_eq!(cost(&price, &usage), Usd::from_nanos(nanos), "{usage:?}");
        }
    }

    #[test]
    fn it_is_rounded_once_and_half_up() {
        // A third, a half and two thirds of a billionth for each token.
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
    fn a_price_is_written_in_dollars() {
        let text = r#"{"input":0.6,"output":2.2,"cache_read":0.11}"#;
        let price: Price = serde_json::from_str(text).unwrap();
        assert_eq!(price.cache_read, Some(Usd::from_nanos(110_000_000)));
        assert_eq!(serde_json::to_string(&price).unwrap(), text);
    }

    /// Compares with sums that LiteLLM made, where they are at hand: in a folder `shared` beside one of
    /// the folders that this one is in.
    #[test]
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    fn it_agrees_with_litellm() {
        let vectors = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .map(|folder| folder.join("shared/contracts/litellm/cost_vectors.json"))
            .find_map(|path| std::fs::read(path).ok());
        let Some(bytes) = vectors else {
            eprintln!("skipped: no `shared/contracts/litellm/cost_vectors.json` above this folder");
            return;
        };
        let file: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let mut compared = 0;
        for vector in file["vectors"].as_array().unwrap() {
            let text = |key: &str| vector[key].as_str().unwrap();
            let tokens = |key: &str| vector[key].as_u64().unwrap();
            let price = known(&format!("{}/{}", text("provider"), text("model")));
            if vector.get("error").is_some() {
                assert_eq!(price, None, "{vector}");
                continue;
            }
            let usage = usage(
                tokens("prompt_tokens"),
                tokens("completion_tokens"),
                tokens("cached_tokens"),
                tokens("cache_creation_tokens"),
            );
            let total = vector["total"].as_f64().and_then(Usd::from_dollars);
            assert_eq!(price.map(|price| cost(&price, &usage)), total, "{vector}");
            compared += 1;
        }
        assert_eq!(compared, 30);
    }
}
