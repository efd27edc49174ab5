//! Prices compared with LiteLLM's own `completion_cost()`, for all of its chat models.

use std::path::Path;

use ralph_core::ports::TokenUsage;
use ralph_core::price::{self, OutputCounts, PriceBook};
use ralph_test::{run_litellm_script, skip_without_litellm};
use serde::Deserialize;
use serde_json::Value;

/// The first line of the script.
#[derive(Deserialize)]
struct PriceFixtureHeader {
    map: String,
    xai: String,
    xai_calls: Vec<([u64; 4], f64)>,
}

/// A model with the calls that LiteLLM has priced.
#[derive(Deserialize)]
struct PricedModel {
    model: String,
    provider: String,
    #[serde(default)]
    calls: Vec<([u64; 6], f64)>,
    error: Option<String>,
}

impl PricedModel {
    /// Returns the model's name in profiles and in the gate.
    fn full_name(&self) -> String {
        let prefix = format!("{}/", self.provider);
        if self.model.starts_with(&prefix) {
            self.model.clone()
        } else {
            format!("{prefix}{}", self.model)
        }
    }

    /// Returns why ralph's price differs from LiteLLM's, for models with a known difference.
    fn known_difference(&self, entry: &Value) -> Option<&'static str> {
        let is_zero = |key: &str| entry[key].as_f64() == Some(0.0);
        let is_dearer =
            |key: &String| key.ends_with("k_tokens") || key == "cache_creation_input_token_cost";
        let mut keys = entry.as_object().unwrap().keys();
        if entry["input_cost_per_token"].is_null() && entry["tiered_pricing"].is_null() {
            Some(
                "the map has no price of input, so LiteLLM charges nothing, or guesses by the size in the name",
            )
        } else if self.provider == "ollama" && is_zero("input_cost_per_token") {
            Some("a local server's model is free by its address, not by its name")
        } else if self.provider == "perplexity" && keys.any(is_dearer) {
            Some("LiteLLM ignores Perplexity's higher prices of long prompts and of cache writes")
        } else if self.model == "perplexity/perplexity/sonar" {
            Some("LiteLLM takes the doubled provider for a mistake, and the price of another key")
        } else if self.model.starts_with("together-ai-") && self.model.contains(".1b-") {
            Some(
                "it is a class of models by size, and completion_cost() puts its name into another class",
            )
        } else {
            None
        }
    }
}

fn usage(counts: [u64; 6]) -> TokenUsage {
    let [input, output, read, write, hour, reasoning] = counts;
    TokenUsage {
        input_tokens: input,
        output_tokens: output,
        cache_read_tokens: read,
        cache_write_tokens: write,
        cache_write_1h_tokens: hour,
        reasoning_tokens: reasoning,
    }
}

/// Returns a description of each call priced differently; a single one if ralph has no price at
/// all.
fn differences(book: &PriceBook, priced: &PricedModel) -> Vec<String> {
    let Some(price) = book.price(&priced.full_name()) else {
        return vec!["ralph has no price".to_owned()];
    };
    let mut differences = Vec::new();
    for (counts, litellm) in &priced.calls {
        let ralph = price::cost(&price, &usage(*counts)).dollars();
        // ralph rounds a call to the nearest billionth of a dollar.
        if (ralph - litellm).abs() > 0.5e-9 + 1e-12 * litellm {
            differences.push(format!("{counts:?}: ralph {ralph}, LiteLLM {litellm}"));
        }
    }
    differences
}

/// Asserts that reasoning is billed once, whether or not it is included in the output count.
fn assert_xai(book: &PriceBook, model: &str, calls: &[([u64; 4], f64)]) {
    assert_eq!(calls.len(), 5);
    for ([input, output, reasoning, total], litellm) in calls.iter().copied() {
        let counts = OutputCounts {
            input,
            output,
            reasoning,
            total: Some(total),
        };
        let usage = TokenUsage {
            input_tokens: input,
            output_tokens: counts.billed(),
            reasoning_tokens: reasoning,
            ..TokenUsage::default()
        };
        let ralph = price::cost(&book.price(model).unwrap(), &usage).dollars();
        assert!(
            (ralph - litellm).abs() < 0.5e-9,
            "{counts:?} {ralph} {litellm}"
        );
    }
}

#[test]
fn every_chat_model_costs_what_litellm_charges() {
    if skip_without_litellm() {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/prices/litellm_costs.py");
    let printed = run_litellm_script(&script);
    let mut lines = printed.lines();
    let header: PriceFixtureHeader = serde_json::from_str(lines.next().unwrap()).unwrap();
    let map = std::fs::read_to_string(&header.map).unwrap();
    let book = PriceBook::from_litellm(&map).unwrap();
    let entries: Value = serde_json::from_str(&map).unwrap();
    assert_xai(&book, &header.xai, &header.xai_calls);
    let (mut models, mut calls, mut listed) = (0, 0, 0);
    let mut wrong = Vec::new();
    for line in lines {
        let priced: PricedModel = serde_json::from_str(line).unwrap();
        assert_eq!(priced.error, None, "{}", priced.model);
        models += 1;
        calls += priced.calls.len();
        let found = differences(&book, &priced);
        match priced.known_difference(&entries[&priced.model]) {
            None if found.is_empty() => {}
            Some(_) if !found.is_empty() => listed += 1,
            Some(reason) => wrong.push(format!(
                "{} has no difference any more: {reason}",
                priced.model
            )),
            None => wrong.push(format!("{}: {}", priced.model, found.join("; "))),
        }
    }
    assert!(
        models > 3000 && calls > 14_000,
        "{models} models, {calls} calls"
    );
    assert!(
        wrong.is_empty(),
        "{} of {models} models: {}",
        wrong.len(),
        wrong.join("\n")
    );
    // The known differences concern a few models, not the whole map.
    assert!(listed < 200, "{listed}");
}
