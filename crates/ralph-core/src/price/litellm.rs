//! Reads a price map in LiteLLM's format, which anybody can put beside a newer program or an older one.

use serde_json::{Map, Value};

use super::{Price, PriceBook, Tier, Window};
use crate::money::Usd;

/// The prompt lengths for which a map may have other prices, in thousands of tokens.
const LONG: [u64; 5] = [100, 128, 200, 272, 512];

/// Why a price map cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PriceMapError {
    /// It is not JSON.
    #[error("it is no JSON: {0}")]
    NotJson(String),
    /// It is JSON, but not a map of models.
    #[error("it has no model with `input_cost_per_token` and `output_cost_per_token`")]
    NoModels,
}

impl PriceBook {
    /// Reads a price map. Entries without prices of tokens are left out.
    pub fn from_litellm(text: &str) -> Result<Self, PriceMapError> {
        let map: Map<String, Value> = serde_json::from_str(text)
            .map_err(|error| PriceMapError::NotJson(error.to_string()))?;
        let mut book = Self::default();
        for (key, entry) in &map {
            if let Some(price) = price(entry) {
                let name = whole_name(key, entry);
                if let Some(window) = window(entry) {
                    book.add_window(name.clone(), window);
                }
                book.add(name, price);
            }
        }
        if book.is_empty() {
            return Err(PriceMapError::NoModels);
        }
        Ok(book)
    }
}

/// Some models stand there by their bare names.
fn whole_name(key: &str, entry: &Value) -> String {
    match entry["litellm_provider"].as_str() {
        Some(provider) if !key.starts_with(&format!("{provider}/")) => format!("{provider}/{key}"),
        Some(_) | None => key.to_owned(),
    }
}

fn price(entry: &Value) -> Option<Price> {
    let (input, output, cache_read, cache_write) = rates(entry, "")?;
    let tier = LONG.iter().find_map(|thousands| {
        let (input, output, cache_read, cache_write) =
            rates(entry, &format!("_above_{thousands}k_tokens"))?;
        Some(Tier {
            above_tokens: thousands * 1000,
            input,
            output,
            cache_read,
            cache_write,
        })
    });
    Some(Price {
        input,
        output,
        cache_read,
        cache_write,
        tier,
    })
}

fn window(entry: &Value) -> Option<Window> {
    Some(Window {
        max_input: entry["max_input_tokens"].as_u64()?,
        max_output: entry["max_output_tokens"].as_u64()?,
    })
}

type Rates = (Usd, Usd, Option<Usd>, Option<Usd>);

/// Reading from a cache costs as much as reading where there is no price for it, and writing nothing.
fn rates(entry: &Value, ending: &str) -> Option<Rates> {
    let rate = |key: &str| {
        let per_token = entry[format!("{key}{ending}")].as_f64()?;
        Usd::from_dollars(per_token * 1e6)
    };
    let cache_write = rate("cache_creation_input_token_cost").unwrap_or(Usd::ZERO);
    Some((
        rate("input_cost_per_token")?,
        rate("output_cost_per_token")?,
        rate("cache_read_input_token_cost"),
        Some(cache_write),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_read() {
        let text = r#"{
            "sample_spec": {"input_cost_per_token": "what a token costs"},
            "zai/glm-9": {"litellm_provider": "zai", "input_cost_per_token": 6e-07, "output_cost_per_token": 2.2e-06,
                          "cache_read_input_token_cost": 1.1e-07},
            "gpt-9": {"litellm_provider": "openai", "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6,
                      "input_cost_per_token_above_200k_tokens": 3e-6, "output_cost_per_token_above_200k_tokens": 4e-6},
            "negative": {"litellm_provider": "openai", "input_cost_per_token": -1e-6, "output_cost_per_token": 2e-6},
            "picture": {"litellm_provider": "openai", "output_cost_per_image": 0.04}
        }"#;
        let book = PriceBook::from_litellm(text).unwrap();
        let usd = |dollars| Usd::from_dollars(dollars).unwrap();
        assert_eq!(book.len(), 2);
        assert_eq!(
            book.price("zai/glm-9"),
            Some(Price {
                input: usd(0.6),
                output: usd(2.2),
                cache_read: Some(usd(0.11)),
                cache_write: Some(Usd::ZERO),
                tier: None,
            })
        );
        let long = book.price("gpt-9").unwrap().for_prompt(200_001);
        assert_eq!((long.input, long.output), (usd(3.0), usd(4.0)));
    }

    #[test]
    fn what_is_no_map_is_refused() {
        for (text, why) in [
            (
                "{}",
                "it has no model with `input_cost_per_token` and `output_cost_per_token`",
            ),
            (
                "[]",
                "it is no JSON: invalid type: sequence, expected a map at line 1 column 0",
            ),
            ("<html>", "it is no JSON: expected value at line 1 column 1"),
        ] {
            assert_eq!(PriceBook::from_litellm(text).unwrap_err().to_string(), why);
        }
    }
}
