//! The prices of common models, as LiteLLM's price map of version 1.108.4 has them.

use super::{Price, Tier};
use crate::money::Usd;

/// One model's prices, in millionths of a dollar for a million tokens.
struct Row {
    provider: &'static str,
    model: &'static str,
    /// Input, output, cache read, cache write.
    rates: [u64; 4],
    /// From how many input tokens on other rates hold, and which.
    long: Option<(u64, [u64; 4])>,
}

const fn row(provider: &'static str, model: &'static str, rates: [u64; 4]) -> Row {
    Row {
        provider,
        model,
        rates,
        long: None,
    }
}

impl Row {
    const fn above(self, tokens: u64, rates: [u64; 4]) -> Self {
        Self {
            long: Some((tokens, rates)),
            ..self
        }
    }

    fn price(&self) -> Price {
        let usd = |micros: u64| Usd::from_nanos(micros * 1000);
        let [input, output, cache_read, cache_write] = self.rates.map(usd);
        let tier = self.long.map(|(above_tokens, rates)| {
            let [input, output, cache_read, cache_write] = rates.map(usd);
            Tier {
                above_tokens,
                input,
                output,
                cache_read: Some(cache_read),
                cache_write: Some(cache_write),
            }
        });
        Price {
            input,
            output,
            cache_read: Some(cache_read),
            cache_write: Some(cache_write),
            tier,
        }
    }
}

/// Where a provider takes no price for writing to its cache, the tokens written are free: that is
/// how LiteLLM counts them.
const ROWS: [Row; 30] = [
    row("zai", "glm-4.5", [600_000, 2_200_000, 600_000, 0]),
    row("zai", "glm-4.5-air", [200_000, 1_100_000, 200_000, 0]),
    row("zai", "glm-4.6", [600_000, 2_200_000, 110_000, 0]),
    row("zai", "glm-4.7", [600_000, 2_200_000, 110_000, 0]),
    row("zai", "glm-4.7-flash", [0, 0, 0, 0]),
    row("zai", "glm-5", [1_000_000, 3_200_000, 200_000, 0]),
    row("openai", "gpt-5", [1_250_000, 10_000_000, 125_000, 0]),
    row("openai", "gpt-5-codex", [1_250_000, 10_000_000, 125_000, 0]),
    row("openai", "gpt-5-mini", [250_000, 2_000_000, 25_000, 0]),
    row("openai", "gpt-5-nano", [50_000, 400_000, 5_000, 0]),
    row(
        "openai",
        "gpt-5-pro",
        [15_000_000, 120_000_000, 15_000_000, 0],
    ),
    row("openai", "gpt-5.1", [1_250_000, 10_000_000, 125_000, 0]),
    row(
        "openai",
        "gpt-5.1-codex",
        [1_250_000, 10_000_000, 125_000, 0],
    ),
    row("openai", "gpt-5.2", [1_750_000, 14_000_000, 175_000, 0]),
    row(
        "openai",
        "gpt-5.2-codex",
        [1_750_000, 14_000_000, 175_000, 0],
    ),
    row("openai", "gpt-5.4", [2_500_000, 15_000_000, 250_000, 0])
        .above(272_000, [5_000_000, 22_500_000, 500_000, 0]),
    row(
        "anthropic",
        "claude-haiku-4-5",
        [1_000_000, 5_000_000, 100_000, 1_250_000],
    ),
    row(
        "anthropic",
        "claude-sonnet-4-5",
        [3_000_000, 15_000_000, 300_000, 3_750_000],
    ),
    row(
        "anthropic",
        "claude-sonnet-4-6",
        [3_000_000, 15_000_000, 300_000, 3_750_000],
    ),
    row(
        "anthropic",
        "claude-opus-4-5",
        [5_000_000, 25_000_000, 500_000, 6_250_000],
    ),
    row(
        "anthropic",
        "claude-opus-4-6",
        [5_000_000, 25_000_000, 500_000, 6_250_000],
    ),
    row(
        "anthropic",
        "claude-opus-4-7",
        [5_000_000, 25_000_000, 500_000, 6_250_000],
    ),
    row(
        "gemini",
        "gemini-2.5-flash",
        [300_000, 2_500_000, 30_000, 0],
    ),
    row(
        "gemini",
        "gemini-2.5-flash-lite",
        [100_000, 400_000, 10_000, 0],
    ),
    row(
        "gemini",
        "gemini-2.5-pro",
        [1_250_000, 10_000_000, 125_000, 0],
    )
    .above(200_000, [2_500_000, 15_000_000, 250_000, 0]),
    row(
        "gemini",
        "gemini-3-flash-preview",
        [500_000, 3_000_000, 50_000, 0],
    ),
    row(
        "gemini",
        "gemini-3.1-pro-preview",
        [2_000_000, 12_000_000, 200_000, 0],
    )
    .above(200_000, [4_000_000, 18_000_000, 400_000, 0]),
    row("deepseek", "deepseek-chat", [280_000, 420_000, 28_000, 0]),
    row(
        "deepseek",
        "deepseek-reasoner",
        [280_000, 420_000, 28_000, 0],
    ),
    row("deepseek", "deepseek-v3.2", [280_000, 400_000, 28_000, 0]),
];

/// The schemes of models that answer from a file.
const FREE: [&str; 2] = ["scripted:", "replay:"];
/// The providers whose models are also known by their bare names.
const BARE: [&str; 2] = ["openai", "anthropic"];

/// Returns the price of a model by its name: `zai/glm-4.7`, `claude-sonnet-4-5`,
/// `openai/gpt-5-2025-08-07`. Models that answer from a file are free.
pub fn known(model: &str) -> Option<Price> {
    if FREE.iter().any(|scheme| model.starts_with(scheme)) {
        return Some(Price::FREE);
    }
    let (provider, name) = match model.split_once('/') {
        Some((provider, name)) => (Some(provider), name),
        None => (None, model),
    };
    let is_right = |row: &&Row| match provider {
        Some(provider) => row.provider == provider,
        None => BARE.contains(&row.provider),
    };
    ROWS.iter()
        .filter(is_right)
        .find(|row| row.model == name || row.model == without_date(name))
        .map(Row::price)
}

/// Returns a name without the date of its version, `-20250929` or `-2025-08-07`.
fn without_date(name: &str) -> &str {
    let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).count();
    for length in [9, 11] {
        if let Some((start, date)) = name.split_at_checked(name.len().saturating_sub(length))
            && date.starts_with('-')
            && digits(date) == 8
        {
            return start;
        }
    }
    name
}

/// Returns a price that no known model exceeds, for estimates about one that is not known.
pub fn highest() -> Price {
    let rates = ROWS
        .iter()
        .map(Row::price)
        .flat_map(|price| [price.for_prompt(0), price.for_prompt(u64::MAX)]);
    rates.fold(Price::FREE, |highest, price| Price {
        input: highest.input.max(price.input),
        output: highest.output.max(price.output),
        cache_read: highest.cache_read.max(price.cache_read),
        cache_write: highest.cache_write.max(price.cache_write),
        tier: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dollars(model: &str) -> Option<(f64, f64)> {
        known(model).map(|price| (price.input.dollars(), price.output.dollars()))
    }

    #[test]
    fn a_model_is_found_by_its_names() {
        for (model, price) in [
            ("zai/glm-4.7", Some((0.6, 2.2))),
            ("openai/gpt-5", Some((1.25, 10.0))),
            ("gpt-5", Some((1.25, 10.0))),
            ("gpt-5-2025-08-07", Some((1.25, 10.0))),
            ("anthropic/claude-sonnet-4-5", Some((3.0, 15.0))),
            ("claude-sonnet-4-5-20250929", Some((3.0, 15.0))),
            ("gemini/gemini-2.5-pro", Some((1.25, 10.0))),
            ("deepseek/deepseek-chat", Some((0.28, 0.42))),
            ("scripted:demo.jsonl", Some((0.0, 0.0))),
            ("replay:runs/1", Some((0.0, 0.0))),
            ("glm-4.7", None),
            ("zai/gpt-5", None),
            ("openai/gpt-5-preview", None),
            ("openrouter/anthropic/claude-sonnet-4-5", None),
            ("xai/grok-4", None),
            ("é-20250929", None),
            ("-", None),
            ("", None),
        ] {
            assert_eq!(dollars(model), price, "{model}");
        }
    }

    #[test]
    fn each_model_has_one_price() {
        for row in &ROWS {
            let same = |other: &&Row| (other.provider, other.model) == (row.provider, row.model);
            assert_eq!(ROWS.iter().filter(same).count(), 1, "{}", row.model);
        }
    }

    #[test]
    fn the_highest_price_is_above_all() {
        let usd = |dollars| Usd::from_dollars(dollars).unwrap();
        let expected = Price {
            input: usd(15.0),
            output: usd(120.0),
            cache_read: Some(usd(15.0)),
            cache_write: Some(usd(6.25)),
            tier: None,
        };
        assert_eq!(highest(), expected);
    }
}
