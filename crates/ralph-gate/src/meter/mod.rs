//! What the calls through the credential port cost: reserved before they are made, charged when the
//! provider has counted.
//!
//! - `account` is the one that the run shares; a `call` is one request on it, `bound` the most that it
//!   can be billed for.
//! - `gauge` reads a call's answer as it passes; `lines` and `usage` are the formats it reads.

mod account;
mod call;
mod reported_tokens;
mod response_meter;
mod sse;
mod token_bound;
mod usage_event;

pub(crate) use account::AdmissionError;
pub use account::{Charge, CostMeter, MeterRates};
pub(crate) use call::{CallControl, MeteredCall, MeteredRequest};
pub(crate) use response_meter::ResponseMeter;
pub(crate) use token_bound::{BadField, BoundedRequest, TokenBound, limit_output};
pub(crate) use usage_event::ModelWireFormat;
