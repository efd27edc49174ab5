//! Model prices: the embedded ones, and those of a file.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::cost::PriceRates;
use super::{Price, TokenWindow};

/// The embedded prices and token windows, a subset of LiteLLM's map in its own format.
const EMBEDDED_PRICES: &str = include_str!("prices.json");

/// The schemes of models that read replies from a file.
const FREE_SCHEMES: [&str; 2] = ["scripted:", "replay:"];
/// The providers that usually run on the user's machine. A name does not prove that the server
/// does, so these models have no price by name.
const LOCAL_PROVIDERS: [&str; 2] = ["ollama", "lm_studio"];
/// The providers of models that are also known by their bare names.
const BARE_NAME_PROVIDERS: [&str; 2] = ["openai", "anthropic"];
/// Prefix of a gateway, which forwards requests to models with their own prices.
const GATEWAY_PREFIX: &str = "litellm_proxy/";

/// The prices of models, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriceBook {
    by_name: BTreeMap<String, Price>,
    #[serde(default)]
    windows: BTreeMap<String, TokenWindow>,
    /// Full names, `provider/model`, of models listed here under a bare name.
    #[serde(default)]
    aliases: BTreeMap<String, String>,
    /// Prices of models that are missing here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fallback: Option<Box<PriceBook>>,
}

impl PriceBook {
    /// The LiteLLM version of the embedded price map.
    pub const EMBEDDED_VERSION: &str = "1.108.4";

    /// Returns the embedded prices.
    pub fn embedded() -> &'static Self {
        static BOOK: LazyLock<PriceBook> = LazyLock::new(|| {
            PriceBook::from_litellm(EMBEDDED_PRICES).expect("the embedded prices are valid")
        });
        &BOOK
    }

    /// Adds a model's price.
    pub fn add(&mut self, name: String, price: Price) {
        self.by_name.insert(name, price);
    }

    /// Adds a model's token window.
    pub(super) fn add_window(&mut self, name: String, window: TokenWindow) {
        self.windows.insert(name, window);
    }

    /// Maps the full name of a model to its bare name.
    pub(super) fn add_alias(&mut self, whole: String, bare: String) {
        self.aliases.insert(whole, bare);
    }

    /// Returns these prices, extended by another book for models that are missing here.
    #[must_use]
    pub fn with_fallback(mut self, other: Self) -> Self {
        self.fallback = Some(Box::new(match self.fallback.take() {
            Some(fallback) => fallback.with_fallback(other),
            None => other,
        }));
        self
    }

    /// Returns the number of models with a price, without fallbacks.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Returns whether no model has a price, without fallbacks.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Returns the models with a price, ordered by name, without fallbacks.
    pub fn prices(&self) -> impl Iterator<Item = (&str, &Price)> {
        self.by_name
            .iter()
            .map(|(name, price)| (name.as_str(), price))
    }

    /// Returns the price listed under exactly this name.
    pub(super) fn exact_price(&self, name: &str) -> Option<&Price> {
        self.by_name.get(name)
    }

    /// Returns the price of a model by its name: `zai/glm-4.7`, `claude-sonnet-4-5`,
    /// `openai/gpt-5-2025-08-07`. Models that read replies from a file are free.
    pub fn price(&self, model: &str) -> Option<Price> {
        if FREE_SCHEMES.iter().any(|scheme| model.starts_with(scheme)) {
            return Some(Price::FREE);
        }
        let fallback = || self.fallback.as_ref()?.price(model);
        self.find(&self.by_name, model).or_else(fallback)
    }

    /// Returns the token window of a model; the same names are accepted.
    pub fn window(&self, model: &str) -> Option<TokenWindow> {
        let fallback = || self.fallback.as_ref()?.window(model);
        self.find(&self.windows, model).or_else(fallback)
    }

    /// Returns a price that no model here exceeds, for estimates about unknown models.
    pub fn highest(&self) -> Price {
        let rates = self.by_name.values();
        let rates = rates.flat_map(|price| price.rates_up_to(u64::MAX));
        let highest = rates.fold(None, |highest: Option<PriceRates>, rates| {
            Some(highest.map_or(rates, |highest| highest.max(rates)))
        });
        highest.map_or(Price::FREE, Price::from)
    }

    /// Finds a model by its exact name, then without its version date, then by its bare name.
    fn find<T: Copy>(&self, by_name: &BTreeMap<String, T>, model: &str) -> Option<T> {
        let model = model.strip_prefix(GATEWAY_PREFIX).unwrap_or(model);
        let names = [model, without_date(model)];
        let listed = |name: &str| {
            let alias = || by_name.get(self.aliases.get(name)?);
            by_name.get(name).or_else(alias).copied()
        };
        let bare = || {
            let mut providers = BARE_NAME_PROVIDERS.iter().filter(|_| !model.contains('/'));
            providers.find_map(|provider| {
                let mut names = names.iter();
                names.find_map(|name| listed(&format!("{provider}/{name}")))
            })
        };
        names.into_iter().find_map(listed).or_else(bare)
    }
}

/// Returns whether a model is free if its server runs on the user's machine.
pub fn is_free_on_loopback(model: &str) -> bool {
    model
        .split_once('/')
        .is_some_and(|(provider, _)| is_local_provider(provider))
}

/// Returns whether a provider usually runs on the user's machine.
pub(super) fn is_local_provider(provider: &str) -> bool {
    LOCAL_PROVIDERS.contains(&provider)
}

/// Removes the version date of a name, `-20250929` or `-2025-08-07`.
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
    use crate::money::Usd;

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
    fn every_embedded_model_has_a_price_and_a_window() {
        let book = PriceBook::embedded();
        let lines = EMBEDDED_PRICES.lines().filter(|line| line.starts_with('"'));
        assert_eq!(book.len(), lines.count());
        assert!(book.len() >= 70, "{}", book.len());
        for (name, _) in book.prices() {
            let window = book.window(name).expect(name);
            assert!(window.max_input >= 100_000, "{name}");
            assert!(window.max_output >= 8_000, "{name}");
        }
        assert_eq!(book.windows.len(), book.len());
        let dated = book.window("claude-haiku-4-5-20251001");
        assert_eq!(dated.map(|window| window.max_output), Some(64_000));
    }

    #[test]
    fn a_fallback_supplies_missing_prices() {
        let book = |name: &str, dollars| {
            let mut book = PriceBook::default();
            let input = Usd::from_dollars(dollars).unwrap();
            let price = Price {
                input,
                ..Price::FREE
            };
            book.add(name.to_owned(), price);
            book
        };
        let all = book("zai/a", 1.0)
            .with_fallback(book("zai/b", 2.0))
            .with_fallback(book("zai/a-20260101", 3.0));
        let dollars = |name: &str| all.price(name).map(|price| price.input.dollars());
        for (name, expected) in [
            ("zai/a", Some(1.0)),
            // The first book with the model wins.
            ("zai/a-20260101", Some(1.0)),
            ("zai/b", Some(2.0)),
            ("zai/c", None),
        ] {
            assert_eq!(dollars(name), expected, "{name}");
        }
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<PriceBook>(&text).unwrap(), all);
    }

    #[test]
    fn the_highest_price_exceeds_all_others() {
        let usd = |dollars| Usd::from_dollars(dollars).unwrap();
        let expected = Price {
            input: usd(20.0),
            output: usd(120.0),
            cache_read: Some(usd(15.0)),
            cache_write: Some(usd(25.0)),
            cache_write_1h: Some(usd(25.0)),
            reasoning: Some(usd(120.0)),
            ..Price::FREE
        };
        assert_eq!(PriceBook::embedded().highest(), expected);
        assert_eq!(PriceBook::default().highest(), Price::FREE);
    }
}
