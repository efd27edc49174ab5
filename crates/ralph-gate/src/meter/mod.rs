//! What the calls through the credential port cost, charged while they run.
//!
//! - `account` is the one that the run shares; a `call` is one request on it.
//! - `gauge` reads a call's answer as it passes; `lines` and `usage` are the formats it reads.

mod account;
mod call;
mod gauge;
mod lines;
mod usage;

pub(crate) use account::Unpaid;
pub use account::{Charge, Meter, Rates};
pub(crate) use call::{Ask, Call, Step};
pub(crate) use gauge::Gauge;
pub(crate) use usage::Wire;
