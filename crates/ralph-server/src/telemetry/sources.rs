//! Everything that is measured.

use std::collections::BTreeMap;
use std::sync::Arc;

use ralph_app::App;
use ralph_app::telemetry::{MetricFamily, MetricKind, MetricSample, MetricValue};

use super::memory::resident_bytes;
use super::server_metrics::{ServerMetrics, number};
use crate::fleet::Fleet;
use crate::live::LiveStreams;
use crate::supervisor::Supervisor;

/// The parts of the server that have metrics.
#[derive(Debug, Clone)]
pub(crate) struct MetricSources {
    pub(crate) app: Arc<App>,
    pub(crate) supervisor: Supervisor,
    pub(crate) fleet: Fleet,
    pub(crate) live: LiveStreams,
    pub(crate) requests: ServerMetrics,
}

impl MetricSources {
    /// Reads all metrics. Blocks the thread: the journals of unfinished runs are read.
    pub(crate) fn families(&self) -> Vec<MetricFamily> {
        let mut families = self.app.telemetry().counters().families();
        families.extend(self.runs());
        let queue = self.supervisor.queue();
        let gauges = [
            (
                "ralph_workers",
                "Runs that can work at the same time",
                queue.workers,
            ),
            (
                "ralph_working_runs",
                "Runs with a worker of this server",
                queue.working.len(),
            ),
            (
                "ralph_stream_clients",
                "Connected clients of WebSocket streams",
                self.live.clients(),
            ),
            (
                "ralph_queue_length",
                "Runs that wait for a worker",
                queue.queued.len(),
            ),
        ];
        families.extend(gauges.map(|(name, help, value)| {
            MetricFamily::number(name, help, MetricKind::Gauge, number(value))
        }));
        families.push(self.requests.family());
        let too_slow = usize::try_from(self.live.too_slow()).unwrap_or(usize::MAX);
        families.push(MetricFamily::number(
            "ralph_stream_clients_too_slow",
            "Clients of streams that were closed because they were too slow",
            MetricKind::Counter,
            number(too_slow),
        ));
        if let Some(bytes) = resident_bytes() {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            families.push(MetricFamily::number(
                "process_resident_memory_bytes",
                "Resident memory of the server",
                MetricKind::Gauge,
                number(bytes),
            ));
        }
        if let Some(exporter) = self.app.telemetry().exporter() {
            let dropped = usize::try_from(exporter.dropped()).unwrap_or(usize::MAX);
            families.push(MetricFamily::number(
                "ralph_export_dropped_spans",
                "Spans that no collector received",
                MetricKind::Counter,
                number(dropped),
            ));
        }
        families
    }

    /// Counts the unfinished runs by status.
    fn runs(&self) -> Option<MetricFamily> {
        let read = self.app.state_dir().and_then(|state| {
            let now = self.app.clock().now();
            self.fleet.lock().read(&state, now)
        });
        let runs = match read {
            Ok(runs) => runs,
            Err(error) => {
                tracing::warn!(%error, "the runs are not counted");
                return None;
            }
        };
        let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
        for run in &runs {
            *counts.entry(run.summary.status).or_default() += 1;
        }
        let samples = counts.into_iter().map(|(status, count)| MetricSample {
            labels: vec![("status", status.to_owned())],
            value: MetricValue::Number(number(count)),
        });
        Some(MetricFamily {
            name: "ralph_unfinished_runs",
            help: "Unfinished runs of the state directory",
            kind: MetricKind::Gauge,
            samples: samples.collect(),
        })
    }
}
