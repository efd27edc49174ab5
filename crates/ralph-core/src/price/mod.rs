//! What a model call costs: the rule, and the prices of common models.
//!
//! The engine charges every call with [`cost`]. A model without a known price has none here, so
//! that a cost budget can be refused instead of being watched with a wrong number.

mod cost;
mod table;

pub use cost::{Price, Tier, cost};
pub use table::{highest, known};
