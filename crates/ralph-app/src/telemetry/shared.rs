//! The telemetry that all contexts of a process share.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::counters::WorkCounters;
use super::otlp::OtlpExporter;

/// The counters of a process, and its exporter.
#[derive(Debug, Default)]
pub struct Telemetry {
    counters: Arc<WorkCounters>,
    exporter: OnceLock<OtlpExporter>,
}

impl Telemetry {
    /// Returns the counters.
    pub fn counters(&self) -> Arc<WorkCounters> {
        self.counters.clone()
    }

    /// Returns the exporter, if one was started.
    pub fn exporter(&self) -> Option<&OtlpExporter> {
        self.exporter.get()
    }

    /// Sets the exporter, unless there is one.
    pub(crate) fn set_exporter(&self, exporter: OtlpExporter) {
        if self.exporter.set(exporter).is_err() {
            tracing::debug!("the exporter was started twice");
        }
    }

    /// Sends what the exporter still has, for at most this long.
    pub fn flush(&self, most: Duration) {
        if let Some(exporter) = self.exporter() {
            exporter.flush(most);
        }
    }
}
