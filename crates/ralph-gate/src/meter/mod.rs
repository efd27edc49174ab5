//! What the calls through the credential port cost, charged while they run.
//!
//! - `meter` is the account that the run shares; a `call` is one request on it.
//! - `gauge` reads a call's answer as it passes; `lines` and `usage` are the formats it reads.

mod call;
mod gauge;
mod lines;
mod meter;
mod usage;

pub(crate) use call::{Ask, Call, Step};
pub(crate) use gauge::Gauge;
pub(crate) use meter::Unpaid;
pub use meter::{Charge, Meter, Rates};
pub(crate) use usage::Wire;
