//! Counts and traces the work of this process on a run, from the records of its journal.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use ralph_engine::journal::{self, Journal};
use ralph_engine::store::RunDir;
use tokio::sync::watch;

use crate::app::App;
use crate::telemetry::{RunSpans, Telemetry};

/// Reads the new records of a run while this process works on it.
pub(super) struct MeasuredRun {
    journal: PathBuf,
    /// The end of the records that were read.
    offset: u64,
    telemetry: Arc<Telemetry>,
    /// The spans, if they are exported.
    spans: Option<RunSpans>,
}

/// Returns the telemetry of this process, with its export started. Invalid settings of the export do not stop a run.
pub(super) fn telemetry(app: &App) -> Arc<Telemetry> {
    if let Err(error) = app.start_export(None) {
        tracing::warn!(%error, "telemetry is not exported");
    }
    app.telemetry()
}

impl MeasuredRun {
    /// Starts after the records that exist. The process owns the journal, so no other one adds a record.
    pub(super) fn new(dir: &RunDir, journal: &Journal, telemetry: Arc<Telemetry>) -> Self {
        let path = dir.journal();
        let offset = fs::metadata(&path).map_or(0, |metadata| metadata.len());
        let spans = telemetry.exporter().map(|_| RunSpans::new(journal.state()));
        Self {
            journal: path,
            offset,
            telemetry,
            spans,
        }
    }

    /// Reads records until `latest`, the number of the last one, is closed.
    pub(super) async fn follow(mut self, mut latest: watch::Receiver<u64>) {
        loop {
            let has_ended = latest.changed().await.is_err();
            self.read_new();
            if has_ended {
                return;
            }
        }
    }

    fn read_new(&mut self) {
        let (records, offset) = match journal::read_from(&self.journal, self.offset) {
            Ok(read) => read,
            Err(error) => {
                tracing::debug!(%error, "a run is not measured any more");
                return;
            }
        };
        self.offset = offset;
        let counters = self.telemetry.counters();
        for record in &records {
            counters.count_record(record);
            if let (Some(spans), Some(exporter)) = (&mut self.spans, self.telemetry.exporter()) {
                for span in spans.add(record) {
                    exporter.send(span);
                }
            }
        }
    }
}
