//! The metrics of the server: `/metrics` serves them, and the export sends them.
//!
//! - [`ServerMetrics`] counts requests.
//! - [`MetricSources`] collects all families; `exposition` writes them as text.

mod exposition;
mod memory;
mod server_metrics;
mod sources;

pub(crate) use exposition::exposition;
pub(crate) use server_metrics::{RouteLabel, ServerMetrics, label_route};
pub(crate) use sources::MetricSources;
