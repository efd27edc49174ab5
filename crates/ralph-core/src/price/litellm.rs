//! Parses a price map in LiteLLM's format, by the rules of LiteLLM's own cost calculation.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::book::is_local_provider;
use super::{Price, PriceBook, PriceTier, TokenWindow};
use crate::money::Usd;
use crate::parse_value;

/// The keys that may end in a prompt length: `input_cost_per_token_above_200k_tokens`.
const TIERED: [&str; 4] = [INPUT, OUTPUT, CACHE_READ, CACHE_WRITE];
const INPUT: &str = "input_cost_per_token";
const OUTPUT: &str = "output_cost_per_token";
const CACHE_READ: &str = "cache_read_input_token_cost";
const CACHE_WRITE: &str = "cache_creation_input_token_cost";
const CACHE_WRITE_1H: &str = "cache_creation_input_token_cost_above_1hr";
const REASONING: &str = "output_cost_per_reasoning_token";
pub(super) const TIERS: &str = "tiered_pricing";
pub(super) const PROVIDER: &str = "litellm_provider";

/// Why a price map cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PriceMapError {
    /// The text is not JSON.
    #[error("invalid JSON: {0}")]
    NotJson(String),
    /// The text is JSON, but not a map of models.
    #[error("it has no model with `input_cost_per_token` and `output_cost_per_token`")]
    NoModels,
    /// The map has too few models to replace a whole map.
    #[error("it has prices for {found} models, but a price map has at least {least}")]
    TooFew {
        /// Models with a price.
        found: usize,
        /// Expected models.
        least: usize,
    },
    /// A value is not a plausible token price.
    #[error("`{key}` of `{model}` is `{value}`, but a token price is a number from 0 to {most}")]
    NotAPrice {
        model: String,
        key: String,
        /// Shortened.
        value: String,
        /// In dollars.
        most: String,
    },
}

impl PriceBook {
    /// Parses a price map. Entries without token prices are ignored.
    pub fn from_litellm(text: &str) -> Result<Self, PriceMapError> {
        let book = Self::from_entries(&parse(text)?);
        if book.is_empty() {
            return Err(PriceMapError::NoModels);
        }
        Ok(book)
    }

    /// Returns the prices of a map's entries. Entries without token prices are ignored.
    pub fn from_entries(entries: &Map<String, Value>) -> Self {
        let mut book = Self::default();
        for (key, entry) in entries {
            let Some(price) = price_from_entry(entry) else {
                continue;
            };
            let provider = provider(entry);
            // A local server's price does not apply to a server at another address.
            if is_local_provider(provider) && price == Price::FREE {
                continue;
            }
            if !provider.is_empty() && !key.starts_with(&format!("{provider}/")) {
                book.add_alias(format!("{provider}/{key}"), key.clone());
            }
            if let Some(window) = token_window(entry) {
                book.add_window(key.clone(), window);
            }
            book.add(key.clone(), price);
        }
        book
    }
}

pub(super) fn parse(text: &str) -> Result<Map<String, Value>, PriceMapError> {
    serde_json::from_str(text).map_err(|error| PriceMapError::NotJson(error.to_string()))
}

/// Returns whether a key of an entry affects the cost of a call.
pub(super) fn is_price_key(key: &str) -> bool {
    // Keys with other suffixes are prices of batches and of faster or slower service tiers.
    match key.split_once("_above_") {
        Some((base, rest)) => {
            TIERED.contains(&base) && (rest == "1hr" || rest.ends_with("_tokens"))
        }
        None => TIERED.contains(&key) || key == REASONING,
    }
}

/// Returns the provider prefix of a model's name.
fn provider(entry: &Value) -> &str {
    let name = entry[PROVIDER].as_str().unwrap_or_default();
    match name {
        "bedrock_converse" => "bedrock",
        _ if name.starts_with("vertex_ai-") => "vertex_ai",
        _ => name,
    }
}

fn token_window(entry: &Value) -> Option<TokenWindow> {
    Some(TokenWindow {
        max_input: entry["max_input_tokens"].as_u64()?,
        max_output: entry["max_output_tokens"].as_u64()?,
    })
}

fn price_from_entry(entry: &Value) -> Option<Price> {
    if let Some(ranges) = entry[TIERS].as_array() {
        return price_from_ranges(entry, ranges);
    }
    let base = tier_from_entry(entry, 0)?;
    price_with_tiers(base, tiers_above(entry, &base))
}

/// Returns the price of a model with prices per range of the prompt length.
fn price_from_ranges(entry: &Value, ranges: &[Value]) -> Option<Price> {
    let mut levels = ranges
        .iter()
        .map(|range| {
            let mut prices = range.as_object()?.clone();
            // A list may contain only input prices.
            if !prices.contains_key(OUTPUT) {
                for key in [OUTPUT, REASONING] {
                    prices.insert(key.to_owned(), entry[key].clone());
                }
            }
            tier_from_entry(&Value::Object(prices), whole_tokens(&range["range"][0])?)
        })
        .collect::<Option<Vec<PriceTier>>>()?;
    levels.sort_by_key(|level| level.above_tokens);
    let (base, tiers) = levels.split_first()?;
    price_with_tiers(*base, tiers.to_vec())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked in the line above"
)]
fn whole_tokens(value: &Value) -> Option<u64> {
    let tokens = value.as_f64()?;
    (0.0..=1e12).contains(&tokens).then_some(tokens as u64)
}

/// Returns a price with tiers, ordered by their limits; `None` if there are too many.
fn price_with_tiers(base: PriceTier, tiers: Vec<PriceTier>) -> Option<Price> {
    let mut tiers = tiers.into_iter();
    let price = Price {
        input: base.input,
        output: base.output,
        cache_read: base.cache_read,
        cache_write: base.cache_write,
        cache_write_1h: base.cache_write_1h,
        reasoning: base.reasoning,
        tier: tiers.next(),
        higher_tiers: std::array::from_fn(|_| tiers.next()),
    };
    tiers.next().is_none().then_some(price)
}

fn price_per_million(entry: &Value, key: &str) -> Option<Usd> {
    Usd::from_dollars(entry.get(key)?.as_f64()? * 1e6)
}

/// Reads the prices of an entry or of one of its ranges.
fn tier_from_entry(entry: &Value, above_tokens: u64) -> Option<PriceTier> {
    let input = price_per_million(entry, INPUT)?;
    let output = price_per_million(entry, OUTPUT)?;
    let cache_read = price_per_million(entry, CACHE_READ);
    let cache_read = match provider(entry) {
        "fireworks_ai" => cache_read.or_else(|| half_price(input)),
        // LiteLLM bills its cached input like the rest, whatever the map says.
        "perplexity" => None,
        _ => cache_read,
    };
    Some(PriceTier {
        above_tokens,
        input,
        output,
        cache_read,
        cache_write: price_per_million(entry, CACHE_WRITE),
        cache_write_1h: price_per_million(entry, CACHE_WRITE_1H),
        // A reasoning price equal to the output price follows the output price of long prompts.
        reasoning: price_per_million(entry, REASONING).filter(|reasoning| *reasoning != output),
    })
}

/// Returns the default price of cached input at Fireworks.
fn half_price(input: Usd) -> Option<Usd> {
    Usd::from_dollars(input.dollars() / 2.0)
}

/// Returns the prices of long prompts. A missing price is inherited from shorter prompts.
fn tiers_above(entry: &Value, base: &PriceTier) -> Vec<PriceTier> {
    // xAI bills a prompt of exactly this length as a long one.
    let is_inclusive = provider(entry) == "xai";
    let mut below = *base;
    let mut tiers = Vec::new();
    for (limit, length) in tier_lengths(entry) {
        let at = |key: &str| price_per_million(entry, &format!("{key}_above_{length}_tokens"));
        let cache_read = at(CACHE_READ).filter(|_| provider(entry) != "perplexity");
        below = PriceTier {
            above_tokens: limit.saturating_sub(u64::from(is_inclusive)),
            input: at(INPUT).unwrap_or(below.input),
            output: at(OUTPUT).unwrap_or(below.output),
            cache_read: cache_read.or(below.cache_read),
            cache_write: at(CACHE_WRITE).or(below.cache_write),
            cache_write_1h: at(CACHE_WRITE_1H).or(below.cache_write_1h),
            reasoning: below.reasoning,
        };
        tiers.push(below);
    }
    tiers
}

/// Returns the prompt lengths with separate prices, in tokens and as written in the keys.
fn tier_lengths(entry: &Value) -> BTreeSet<(u64, &str)> {
    let keys = entry.as_object().into_iter().flatten();
    keys.filter(|(_, value)| value.is_number())
        .filter_map(|(key, _)| {
            let (base, rest) = key.split_once("_above_")?;
            let length = rest.strip_suffix("_tokens")?;
            let tokens = match length.strip_suffix('k') {
                Some(thousands) => parse_value::<u64>(thousands)?.checked_mul(1000)?,
                None => parse_value(length)?,
            };
            TIERED.contains(&base).then_some((tokens, length))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book(text: &str) -> PriceBook {
        PriceBook::from_litellm(text).unwrap()
    }

    fn usd(dollars: f64) -> Usd {
        Usd::from_dollars(dollars).unwrap()
    }

    #[test]
    fn parses_a_map() {
        let book = book(
            r#"{
            "sample_spec": {"input_cost_per_token": "what a token costs"},
            "zai/glm-9": {"litellm_provider": "zai", "input_cost_per_token": 6e-07, "output_cost_per_token": 2.2e-06,
                          "cache_read_input_token_cost": 1.1e-07, "input_cost_per_token_priority": 9e-6},
            "gpt-9": {"litellm_provider": "openai", "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6,
                      "input_cost_per_token_above_200k_tokens": 3e-6, "output_cost_per_token_above_200k_tokens": 4e-6},
            "negative": {"litellm_provider": "openai", "input_cost_per_token": -1e-6, "output_cost_per_token": 2e-6},
            "picture": {"litellm_provider": "openai", "output_cost_per_image": 0.04}
        }"#,
        );
        assert_eq!(book.len(), 2);
        assert_eq!(
            book.price("zai/glm-9"),
            Some(Price {
                input: usd(0.6),
                output: usd(2.2),
                cache_read: Some(usd(0.11)),
                ..Price::FREE
            })
        );
        let long = book.price("gpt-9").unwrap().rates(200_001);
        assert_eq!((long.input, long.output), (usd(3.0), usd(4.0)));
        // Without separate prices, cached and written tokens cost as much as the rest.
        assert_eq!((long.cache_read, long.cache_write), (usd(3.0), usd(3.0)));
    }

    #[test]
    fn an_exact_key_wins_over_a_bare_one() {
        let book = book(
            r#"{
            "a-1": {"litellm_provider": "azure", "input_cost_per_token": 1e-6, "output_cost_per_token": 0},
            "azure/a-1": {"litellm_provider": "azure", "input_cost_per_token": 2e-6, "output_cost_per_token": 0},
            "z-1": {"litellm_provider": "azure", "input_cost_per_token": 1e-6, "output_cost_per_token": 0},
            "azure/z-1": {"litellm_provider": "azure", "input_cost_per_token": 2e-6, "output_cost_per_token": 0},
            "gpt-9": {"litellm_provider": "openai", "input_cost_per_token": 5e-6, "output_cost_per_token": 0},
            "vertex_ai/claude-9": {"litellm_provider": "vertex_ai-anthropic_models", "input_cost_per_token": 6e-6, "output_cost_per_token": 0},
            "ollama/free": {"litellm_provider": "ollama", "input_cost_per_token": 0, "output_cost_per_token": 0}
        }"#,
        );
        let input = |name: &str| Some(book.price(name)?.input.dollars());
        for (name, dollars) in [
            ("a-1", Some(1.0)),
            ("azure/a-1", Some(2.0)),
            ("z-1", Some(1.0)),
            ("azure/z-1", Some(2.0)),
            ("gpt-9", Some(5.0)),
            ("openai/gpt-9", Some(5.0)),
            ("openai/gpt-9-2026-01-02", Some(5.0)),
            ("azure/gpt-9", None),
            ("openrouter/openai/gpt-9", None),
            ("vertex_ai/claude-9", Some(6.0)),
            ("ollama/free", None),
        ] {
            assert_eq!(input(name), dollars, "{name}");
        }
    }

    #[test]
    fn long_prompts_change_only_the_listed_prices() {
        let book = book(
            r#"{"m": {"litellm_provider": "gemini", "input_cost_per_token": 1e-6, "output_cost_per_token": 5e-6,
                "cache_read_input_token_cost": 1e-7, "cache_creation_input_token_cost": 2e-6,
                "cache_creation_input_token_cost_above_1hr": 3e-6, "output_cost_per_reasoning_token": 5e-6,
                "input_cost_per_token_above_200k_tokens": 2e-6, "output_cost_per_token_above_200k_tokens": 8e-6,
                "cache_creation_input_token_cost_above_1hr_above_200k_tokens": 6e-6,
                "input_cost_per_token_above_512k_tokens": 4e-6,
                "input_cost_per_token_above_300k_tokens_priority": 9e-6},
             "xai/m": {"litellm_provider": "xai", "input_cost_per_token": 1e-6, "output_cost_per_token": 5e-6,
                "input_cost_per_token_above_200k_tokens": 2e-6}}"#,
        );
        let price = book.price("m").unwrap();
        let long = price.rates(200_001);
        let shown = |rates: super::super::cost::PriceRates| {
            [
                rates.input,
                rates.output,
                rates.cache_read,
                rates.cache_write,
                rates.cache_write_1h,
                rates.reasoning,
            ]
        };
        let all = |dollars: [f64; 6]| dollars.map(usd);
        assert_eq!(
            shown(price.rates(200_000)),
            all([1.0, 5.0, 0.1, 2.0, 3.0, 5.0])
        );
        assert_eq!(shown(long), all([2.0, 8.0, 0.1, 2.0, 6.0, 8.0]));
        assert_eq!(
            shown(price.rates(512_001)),
            all([4.0, 8.0, 0.1, 2.0, 6.0, 8.0])
        );
        let xai = book.price("xai/m").unwrap();
        assert_eq!(xai.rates(199_999).input, usd(1.0));
        assert_eq!(xai.rates(200_000).input, usd(2.0));
    }

    #[test]
    fn prompt_ranges_become_tiers() {
        let book = book(
            r#"{"dashscope/q": {"litellm_provider": "dashscope", "tiered_pricing": [
                {"range": [256000.0, 1000000.0], "input_cost_per_token": 3e-6, "output_cost_per_token": 9e-6},
                {"range": [0, 32000.0], "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6,
                 "output_cost_per_reasoning_token": 4e-6, "cache_read_input_token_cost": 1e-7},
                {"range": [32000.0, 256000.0], "input_cost_per_token": 2e-6, "output_cost_per_token": 6e-6}]},
             "dashscope/too-many": {"litellm_provider": "dashscope", "tiered_pricing": [
                {"range": [0, 1], "input_cost_per_token": 1, "output_cost_per_token": 1},
                {"range": [1, 2], "input_cost_per_token": 1, "output_cost_per_token": 1},
                {"range": [2, 3], "input_cost_per_token": 1, "output_cost_per_token": 1},
                {"range": [3, 4], "input_cost_per_token": 1, "output_cost_per_token": 1},
                {"range": [4, 5], "input_cost_per_token": 1, "output_cost_per_token": 1},
                {"range": [5, 6], "input_cost_per_token": 1, "output_cost_per_token": 1}]}}"#,
        );
        let price = book.price("dashscope/q").unwrap();
        for (tokens, input, output, reasoning, read) in [
            (32_000, 1.0, 2.0, 4.0, 0.1),
            (32_001, 2.0, 6.0, 6.0, 2.0),
            (256_000, 2.0, 6.0, 6.0, 2.0),
            (2_000_000, 3.0, 9.0, 9.0, 3.0),
        ] {
            let rates = price.rates(tokens);
            let found = [rates.input, rates.output, rates.reasoning, rates.cache_read];
            assert_eq!(found, [input, output, reasoning, read].map(usd), "{tokens}");
        }
        assert_eq!(book.price("dashscope/too-many"), None);
    }

    #[test]
    fn rejects_texts_that_are_not_price_maps() {
        for (text, why) in [
            (
                "{}",
                "it has no model with `input_cost_per_token` and `output_cost_per_token`",
            ),
            (
                "[]",
                "invalid JSON: invalid type: sequence, expected a map at line 1 column 0",
            ),
            ("<html>", "invalid JSON: expected value at line 1 column 1"),
        ] {
            assert_eq!(PriceBook::from_litellm(text).unwrap_err().to_string(), why);
        }
    }
}
