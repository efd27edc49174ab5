//! Counts and traces the work of this process on runs.
//!
//! - [`Telemetry`] is shared by all contexts of a process: counters, and the exporter if one is configured.
//! - `counters` adds up journal records and decisions of gates; [`MetricFamily`] is the neutral form that `/metrics`
//!   and the export encode.
//! - `run_spans` derives spans from journal records; `otlp` sends spans and metrics to a collector.

mod counters;
mod metric;
pub mod otlp;
mod run_spans;
mod shared;

pub use counters::WorkCounters;
pub use metric::{HistogramValue, MetricFamily, MetricKind, MetricSample, MetricValue};
pub use run_spans::RunSpans;
pub use shared::Telemetry;
