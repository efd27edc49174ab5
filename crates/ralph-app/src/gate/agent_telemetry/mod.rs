//! The telemetry that agents send to the gate: decodes it and adds it up until the end of their session.
//!
//! `json` and `protobuf` decode the two encodings of OTLP; `totals` adds up the points within limits.

mod json;
mod point;
mod protobuf;
mod totals;

pub use totals::AgentTelemetry;
