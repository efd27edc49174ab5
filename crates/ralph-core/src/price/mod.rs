//! The cost of a model call, and the prices of common models.
//!
//! The engine charges every call with [`cost`]. An unknown model has no price, so that a cost
//! budget is rejected instead of being enforced with a wrong number. [`PriceBook`] contains the
//! embedded prices, or those of a file in LiteLLM's format. [`PriceMap`] is a validated map that
//! replaces the embedded prices.

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

/// Returns the embedded price of a model.
pub fn embedded_price(model: &str) -> Option<Price> {
    PriceBook::embedded().price(model)
}

/// Returns the embedded token window of a model.
pub fn embedded_window(model: &str) -> Option<TokenWindow> {
    PriceBook::embedded().window(model)
}

/// Returns a price that no known model exceeds, for estimates about unknown models.
pub fn highest_price() -> Price {
    PriceBook::embedded().highest()
}
