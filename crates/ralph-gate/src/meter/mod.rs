//! What the calls through the credential port cost: reserved before they are made, charged when the
//! provider has counted.
//!
//! - `account` is the one that the run shares; a `call` is one request on it, `bound` the most that it
//!   can be billed for.
//! - `gauge` reads a call's answer as it passes; `lines` and `usage` are the formats it reads.

mod account;
mod bound;
mod call;
mod gauge;
mod lines;
mod tokens;
mod usage;

pub(crate) use account::Unpaid;
pub use account::{Charge, Meter, Rates};
pub(crate) use bound::{BadField, Measured, TokenBound, limit_output};
pub(crate) use call::{Ask, Call, Step};
pub(crate) use gauge::Gauge;
pub(crate) use usage::Wire;
