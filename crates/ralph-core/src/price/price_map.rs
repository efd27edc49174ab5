//! Price maps that replace the embedded prices: validated as a whole and compared with the old
//! ones.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::litellm::{PROVIDER, TIERS, is_price_key, parse};
use super::{Price, PriceBook, PriceMapError};

/// The highest plausible price of a token, in dollars: ten times that of the most expensive model.
const MAX_TOKEN_PRICE: f64 = 0.1;
/// Maximum number of characters shown of an invalid value.
const SHOWN_CHARS: usize = 40;
/// The entry of LiteLLM's map that describes the format.
const SAMPLE_ENTRY: &str = "sample_spec";

/// A price map, reduced to the values that affect prices.
#[derive(Debug, Clone, PartialEq)]
pub struct PriceMap {
    entries: Map<String, Value>,
}

impl PriceMap {
    /// Minimum number of models in a map that may replace another one.
    pub const MIN_MODELS: usize = 100;

    /// Parses and validates a map in LiteLLM's format. One invalid price rejects the whole map.
    pub fn parse(text: &str) -> Result<Self, PriceMapError> {
        let mut entries = parse(text)?;
        entries.retain(|model, entry| model != SAMPLE_ENTRY && entry.is_object());
        for (model, entry) in &mut entries {
            reduce_entry(model, entry)?;
        }
        let found = PriceBook::from_entries(&entries).len();
        if found < Self::MIN_MODELS {
            let least = Self::MIN_MODELS;
            return Err(PriceMapError::TooFew { found, least });
        }
        Ok(Self { entries })
    }

    /// Returns the entries for storage; they can be parsed as a map again.
    pub fn entries(&self) -> &Map<String, Value> {
        &self.entries
    }

    /// Converts the map to prices.
    pub fn book(&self) -> PriceBook {
        PriceBook::from_entries(&self.entries)
    }
}

/// Removes the values that do not affect prices, and checks the rest.
fn reduce_entry(model: &str, entry: &mut Value) -> Result<(), PriceMapError> {
    let Some(values) = entry.as_object_mut() else {
        return Ok(());
    };
    values.retain(|key, value| {
        let is_used = [
            PROVIDER,
            TIERS,
            "mode",
            "max_input_tokens",
            "max_output_tokens",
        ];
        !value.is_null() && (is_price_key(key) || is_used.contains(&key.as_str()))
    });
    check_prices(model, values)?;
    let ranges = values.get_mut(TIERS).and_then(Value::as_array_mut);
    for range in ranges.into_iter().flatten() {
        if let Some(prices) = range.as_object_mut() {
            prices.retain(|key, _| key == "range" || is_price_key(key));
            check_prices(model, prices)?;
        }
    }
    Ok(())
}

fn check_prices(model: &str, values: &Map<String, Value>) -> Result<(), PriceMapError> {
    for (key, value) in values.iter().filter(|(key, _)| is_price_key(key)) {
        let is_price = value
            .as_f64()
            .is_some_and(|price| (0.0..=MAX_TOKEN_PRICE).contains(&price));
        if !is_price {
            return Err(PriceMapError::NotAPrice {
                model: model.to_owned(),
                key: key.clone(),
                value: value.to_string().chars().take(SHOWN_CHARS).collect(),
                most: MAX_TOKEN_PRICE.to_string(),
            });
        }
    }
    Ok(())
}

/// The differences between two price books.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PriceChanges {
    /// Models without a price before, ordered by name.
    pub added: Vec<String>,
    /// Models without a price now, ordered by name.
    pub removed: Vec<String>,
    /// Models with a different price, biggest change first.
    pub changed: Vec<PriceChange>,
}

/// A changed price of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceChange {
    pub model: String,
    pub before: Price,
    pub after: Price,
}

impl PriceChanges {
    /// Compares the prices of two books, model by model.
    pub fn between(before: &PriceBook, after: &PriceBook) -> Self {
        let mut changes = Self::default();
        for (model, price) in after.prices() {
            let model = model.to_owned();
            match before.exact_price(&model) {
                None => changes.added.push(model),
                Some(old) if old != price => changes.changed.push(PriceChange {
                    model,
                    before: *old,
                    after: *price,
                }),
                Some(_) => {}
            }
        }
        let removed = before.prices().map(|(model, _)| model);
        let removed = removed.filter(|model| after.exact_price(model).is_none());
        changes.removed = removed.map(str::to_owned).collect();
        // The sort is stable: equal changes remain ordered by name.
        changes.changed.sort_by(|one, other| {
            let order = other.factor().partial_cmp(&one.factor());
            order.unwrap_or(Ordering::Equal)
        });
        changes
    }
}

impl PriceChange {
    /// Returns the larger ratio of the old and new input or output prices; infinite if one is free.
    fn factor(&self) -> f64 {
        let prices = [
            (self.before.input, self.after.input),
            (self.before.output, self.after.output),
        ];
        let factors = prices.map(|(before, after)| {
            let (low, high) = (before.min(after), before.max(after));
            if low == high {
                1.0
            } else {
                high.dollars() / low.dollars()
            }
        });
        factors[0].max(factors[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::Usd;

    /// Returns a map of this many models and one more entry.
    fn map(models: usize, more: &str) -> String {
        let entry = |index: usize| {
            format!(
                r#""acme/m{index}":{{"litellm_provider":"acme","input_cost_per_token":1e-6,"output_cost_per_token":2e-6,"supports_vision":true}}"#
            )
        };
        let entries: Vec<String> = (0..models).map(entry).collect();
        format!("{{{}{more}}}", entries.join(","))
    }

    #[test]
    fn a_map_is_reduced_to_the_values_that_affect_prices() {
        let text = map(
            100,
            r#","sample_spec":{"input_cost_per_token":"text"},"x":null,
               "q":{"tiered_pricing":[{"range":[0,5],"input_cost_per_token":1e-6,"output_cost_per_token":0.0,"note":1}],
                    "input_cost_per_token_priority":-1,"max_input_tokens":7,"source":"somewhere"}"#,
        );
        let map = PriceMap::parse(&text).unwrap();
        assert_eq!(map.book().len(), 101);
        let reduced = serde_json::json!({
            "tiered_pricing": [{"range": [0, 5], "input_cost_per_token": 1e-6, "output_cost_per_token": 0.0}],
            "max_input_tokens": 7,
        });
        assert_eq!(map.entries()["q"], reduced);
        let again = serde_json::to_string(map.entries()).unwrap();
        assert_eq!(PriceMap::parse(&again).unwrap(), map);
        assert!(!again.contains("supports_vision"));
    }

    #[test]
    fn a_hostile_map_is_rejected() {
        let number = "but a token price is a number from 0 to 0.1";
        for (text, why) in [
            (String::new(), "invalid JSON: EOF".to_owned()),
            ("[1]".into(), "invalid JSON: invalid type: sequence".into()),
            (
                "{}".into(),
                "it has prices for 0 models, but a price map has at least 100".into(),
            ),
            (map(99, ""), "it has prices for 99 models".into()),
            ("[".repeat(100_000), "invalid JSON: ".into()),
            (
                format!(
                    r#"{{"a":{}1{}}}"#,
                    r#"{"a":"#.repeat(10_000),
                    "}".repeat(10_000)
                ),
                "invalid JSON: recursion limit exceeded".into(),
            ),
            (
                map(100, r#","bad":{"input_cost_per_token":-1e-6}"#),
                format!("`input_cost_per_token` of `bad` is `-1e-6`, {number}"),
            ),
            (
                map(100, r#","bad":{"output_cost_per_token":0.2}"#),
                format!("`output_cost_per_token` of `bad` is `0.2`, {number}"),
            ),
            (
                map(100, r#","bad":{"output_cost_per_token":"1e-6"}"#),
                format!("`output_cost_per_token` of `bad` is `\"1e-6\"`, {number}"),
            ),
            (
                map(
                    100,
                    r#","bad":{"tiered_pricing":[{"range":[0,1],"input_cost_per_token":-1}]}"#,
                ),
                format!("`input_cost_per_token` of `bad` is `-1`, {number}"),
            ),
            (
                map(100, r#","bad":{"input_cost_per_token":NaN}"#),
                "invalid JSON: ".into(),
            ),
            (
                map(100, r#","bad":{"input_cost_per_token":1e999}"#),
                "invalid JSON: number out of range".into(),
            ),
        ] {
            let error = PriceMap::parse(&text).unwrap_err().to_string();
            assert!(error.starts_with(&why), "{error}");
        }
    }

    #[test]
    fn the_biggest_changes_come_first() {
        let book = |prices: &[(&str, f64, f64)]| {
            let mut book = PriceBook::default();
            for (name, input, output) in prices {
                let price = Price {
                    input: Usd::from_dollars(*input).unwrap(),
                    output: Usd::from_dollars(*output).unwrap(),
                    ..Price::FREE
                };
                book.add((*name).to_owned(), price);
            }
            book
        };
        let before = book(&[
            ("a", 1.0, 2.0),
            ("b", 1.0, 2.0),
            ("c", 1.0, 2.0),
            ("d", 0.0, 0.0),
            ("gone", 1.0, 1.0),
        ]);
        let after = book(&[
            ("a", 1.0, 2.0),
            ("b", 2.0, 2.0),
            ("c", 1.0, 0.5),
            ("d", 0.0, 1.0),
            ("new", 1.0, 1.0),
        ]);
        let changes = PriceChanges::between(&before, &after);
        let order = changes.changed.iter().map(|change| change.model.as_str());
        assert_eq!(order.collect::<Vec<_>>(), ["d", "c", "b"]);
        assert_eq!(changes.added, ["new"]);
        assert_eq!(changes.removed, ["gone"]);
    }
}
