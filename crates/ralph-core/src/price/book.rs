//! Which model costs what: the prices that come with the program, and those of a file.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::{Price, Tier, Window};
use crate::money::Usd;

/// The prices that come with the program.
const EMBEDDED: &str = include_str!("prices.txt");
/// The token windows of the same models.
const EMBEDDED_WINDOWS: &str = include_str!("windows.txt");

/// The schemes of models that answer from a file.
const FREE: [&str; 2] = ["scripted:", "replay:"];
/// The providers that usually run on the user's machine. A name proves nothing about the server, so
/// these models have no price by name.
const LOCAL: [&str; 2] = ["ollama/", "lm_studio/"];
/// The providers whose models are also known by their bare names.
const BARE: [&str; 2] = ["openai", "anthropic"];
/// A gateway hands a question on to a model that has a price of its own.
const GATEWAY: &str = "litellm_proxy/";

/// The prices of models, by their whole names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PriceBook {
    by_name: BTreeMap<String, Price>,
    windows: BTreeMap<String, Window>,
}

impl PriceBook {
    /// Returns the prices that come with the program.
    pub fn embedded() -> &'static Self {
        static BOOK: LazyLock<PriceBook> = LazyLock::new(|| PriceBook {
            by_name: EMBEDDED.lines().filter_map(row).collect(),
            windows: EMBEDDED_WINDOWS.lines().filter_map(window_row).collect(),
        });
        &BOOK
    }

    /// Adds a model's price under its whole name, `provider/model`.
    pub fn add(&mut self, name: String, price: Price) {
        self.by_name.insert(name, price);
    }

    /// Adds a model's token window under its whole name.
    pub(super) fn add_window(&mut self, name: String, window: Window) {
        self.windows.insert(name, window);
    }

    /// Returns how many models have a price.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Tells whether no model has a price.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Returns the price of a model by its name: `zai/glm-4.7`, `claude-sonnet-4-5`,
    /// `openai/gpt-5-2025-08-07`. Models that answer from a file are free.
    pub fn price(&self, model: &str) -> Option<Price> {
        if FREE.iter().any(|scheme| model.starts_with(scheme)) {
            return Some(Price::FREE);
        }
        find(&self.by_name, model)
    }

    /// Returns the token window of a model by the same names.
    pub fn window(&self, model: &str) -> Option<Window> {
        find(&self.windows, model)
    }

    /// Returns a price that no model here exceeds, for estimates about one that is not known.
    pub fn highest(&self) -> Price {
        let rates = self
            .by_name
            .values()
            .flat_map(|price| [price.for_prompt(0), price.for_prompt(u64::MAX)]);
        rates.fold(Price::FREE, |highest, price| Price {
            input: highest.input.max(price.input),
            output: highest.output.max(price.output),
            cache_read: highest.cache_read.max(price.cache_read),
            cache_write: highest.cache_write.max(price.cache_write),
            tier: None,
        })
    }
}

/// Reports whether a model's provider charges nothing if its server runs on the user's machine.
pub fn is_free_on_loopback(model: &str) -> bool {
    LOCAL.iter().any(|provider| model.starts_with(provider))
}

fn find<T: Copy>(by_name: &BTreeMap<String, T>, model: &str) -> Option<T> {
    let model = model.strip_prefix(GATEWAY).unwrap_or(model);
    let names = [model, without_date(model)];
    if model.contains('/') {
        return names.iter().find_map(|name| by_name.get(*name).copied());
    }
    BARE.iter()
        .flat_map(|provider| names.map(|name| format!("{provider}/{name}")))
        .find_map(|name| by_name.get(&name).copied())
}

/// Parses one line of the embedded windows.
fn window_row(line: &str) -> Option<(String, Window)> {
    let mut words = line.split('#').next()?.split_whitespace();
    let name = words.next()?.to_owned();
    let window = Window {
        max_input: words.next()?.parse().ok()?,
        max_output: words.next()?.parse().ok()?,
    };
    Some((name, window))
}

/// Reads one line of the embedded prices; comments and blank lines are none.
fn row(line: &str) -> Option<(String, Price)> {
    let line = line.split('#').next()?;
    let mut words = line.split_whitespace();
    let name = words.next()?.to_owned();
    let numbers: Vec<&str> = words.collect();
    let usd = |index: usize| Usd::from_dollars(numbers.get(index)?.parse().ok()?);
    let tier = || {
        Some(Tier {
            above_tokens: numbers.get(4)?.parse().ok()?,
            input: usd(5)?,
            output: usd(6)?,
            cache_read: usd(7),
            cache_write: usd(8),
        })
    };
    let price = Price {
        input: usd(0)?,
        output: usd(1)?,
        cache_read: usd(2),
        cache_write: usd(3),
        tier: tier(),
    };
    Some((name, price))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_found_by_its_names() {
        let dollars = |model: &str| {
            let price = PriceBook::embedded().price(model)?;
            Some((price.input.dollars(), price.output.dollars()))
        };
        for (model, price) in [
            ("zai/glm-4.7", Some((0.6, 2.2))),
            ("openai/gpt-5", Some((1.25, 10.0))),
            ("gpt-5", Some((1.25, 10.0))),
            ("gpt-5-2025-08-07", Some((1.25, 10.0))),
            ("anthropic/claude-sonnet-4-5", Some((3.0, 15.0))),
            ("claude-sonnet-4-5-20250929", Some((3.0, 15.0))),
            ("gemini/gemini-2.5-pro", Some((1.25, 10.0))),
            ("deepseek/deepseek-chat", Some((0.28, 0.42))),
            ("groq/openai/gpt-oss-120b", Some((0.15, 0.6))),
            ("litellm_proxy/zai/glm-4.7", Some((0.6, 2.2))),
            ("litellm_proxy/gpt-5", Some((1.25, 10.0))),
            ("ollama/qwen3", None),
            ("lm_studio/qwen3", None),
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
    fn every_line_is_a_price_and_each_model_has_one() {
        let lines = EMBEDDED
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        assert_eq!(PriceBook::embedded().len(), lines.count());
        assert!(PriceBook::embedded().len() >= 60);
        let tiered = |line: &&str| line.split_whitespace().count() > 5;
        let with_tier = PriceBook::embedded().by_name.values();
        assert_eq!(
            with_tier.filter(|price| price.tier.is_some()).count(),
            EMBEDDED
                .lines()
                .filter(|line| !line.starts_with('#'))
                .filter(tiered)
                .count()
        );
    }

    #[test]
    fn every_priced_model_has_a_window() {
        let book = PriceBook::embedded();
        for name in book.by_name.keys() {
            let window = book.window(name).expect(name);
            assert!(window.max_input >= 100_000, "{name}");
            assert!(window.max_output >= 8_000, "{name}");
        }
        assert_eq!(book.windows.len(), book.len());
        let dated = book.window("claude-haiku-4-5-20251001");
        assert_eq!(dated.map(|window| window.max_output), Some(64_000));
    }

    #[test]
    fn the_highest_price_is_above_all() {
        let usd = |dollars| Usd::from_dollars(dollars).unwrap();
        let expected = Price {
            input: usd(20.0),
            output: usd(120.0),
            cache_read: Some(usd(15.0)),
            cache_write: Some(usd(25.0)),
            tier: None,
        };
        assert_eq!(PriceBook::embedded().highest(), expected);
    }
}
