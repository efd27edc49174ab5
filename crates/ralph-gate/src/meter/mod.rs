//! Meters the cost of calls through the credential port: reserved before a call, charged when the
//! provider reports its count.
//!
//! - `account` is shared with the run; `call` is one request on it, and `token_bound` the maximum
//!   it can be billed for.
//! - `response_meter` reads the response of a call as it is relayed; `sse`, `usage_event` and
//!   `reported_tokens` parse the formats.

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
