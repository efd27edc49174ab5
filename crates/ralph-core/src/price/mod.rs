//! What a model call costs: the rule, and the prices of common models.
//!
//! The engine charges every call with [`cost`]. A model without a known price has none here, so
//! that a cost budget can be refused instead of being watched with a wrong number. [`PriceBook`] holds
//! the prices that come with the program, or those of a file in LiteLLM's format. [`PriceMap`] is a
//! validated map that replaces the embedded prices.

mod book;
mod ceiling;
mod cost;
mod litellm;
mod output;
mod price_map;

pub use book::{PriceBook, is_free_on_loopback};
pub use ceiling::{TokenWindow, affordable_output, highest_cost, with_worst_output, worst_usage};
pub use cost::{Price, PriceTier, cost};
pub use litellm::PriceMapError;
pub use output::OutputCounts;
pub use price_map::{PriceChange, PriceChanges, PriceMap};

/// Returns the price of a model that comes with the program.
pub fn embedded_price(model: &str) -> Option<Price> {
    PriceBook::embedded().price(model)
}

/// Returns the token window of a model that comes with the program.
pub fn embedded_window(model: &str) -> Option<TokenWindow> {
    PriceBook::embedded().window(model)
}

/// Returns a price that no known model exceeds, for estimates about one that is not known.
pub fn highest_price() -> Price {
    PriceBook::embedded().highest()
}
