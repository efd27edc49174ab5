//! Sends spans and metrics to a collector, as OTLP over HTTP with JSON bodies.
//!
//! - [`OtlpSettings`] are the standard variables of the environment.
//! - [`OtlpExporter`] has a bounded queue and a thread of its own: a collector that does not answer delays nothing.
//! - `document` builds the bodies.

mod document;
mod exporter;
mod sender;
mod settings;
mod span;

pub use exporter::{MetricReader, OtlpExporter};
pub use settings::OtlpSettings;
pub use span::{Span, SpanStatus, SpanValue};
