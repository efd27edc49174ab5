//! The queue and the thread of the export.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc as std_mpsc};
use std::time::Duration;

use ralph_core::ports::Clock;
use tokio::runtime::Builder;
use tokio::sync::mpsc;

use super::sender::run_sender;
use super::settings::OtlpSettings;
use super::span::Span;
use crate::error::AppError;
use crate::telemetry::metric::MetricFamily;

/// The most spans that wait to be sent. More are dropped and counted.
const QUEUE_LENGTH: usize = 4096;

/// Returns the current metrics of the process.
pub type MetricReader = Box<dyn Fn() -> Vec<MetricFamily> + Send + Sync>;

/// A message to the thread of the export.
pub(super) enum ExportMessage {
    Span(Box<Span>),
    /// Sends everything now, and reports when that is done.
    Flush(std_mpsc::Sender<()>),
}

/// Sends spans and metrics on a thread of its own. Nothing waits for it but [`OtlpExporter::flush`].
pub struct OtlpExporter {
    queue: mpsc::Sender<ExportMessage>,
    dropped: Arc<AtomicU64>,
}

impl fmt::Debug for OtlpExporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OtlpExporter")
            .field("dropped", &self.dropped())
            .finish_non_exhaustive()
    }
}

impl OtlpExporter {
    /// Starts the thread, which ends with the exporter.
    pub fn start(
        settings: OtlpSettings,
        clock: Arc<dyn Clock>,
        metrics: MetricReader,
    ) -> Result<Self, AppError> {
        let failed = |why: String| {
            AppError::runtime(
                "cannot start the export of telemetry",
                why,
                "check the limits of this user (`ulimit -a`)",
            )
        };
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed(error.to_string()))?;
        let (queue, messages) = mpsc::channel(QUEUE_LENGTH);
        let dropped = Arc::new(AtomicU64::new(0));
        let lost = dropped.clone();
        let work = move || {
            let sending = run_sender(settings, clock, metrics, messages, lost);
            runtime.block_on(sending);
        };
        let spawned = std::thread::Builder::new()
            .name("otlp".to_owned())
            .spawn(work);
        spawned.map_err(|error| failed(error.to_string()))?;
        Ok(Self { queue, dropped })
    }

    /// Queues a span; drops it if the queue is full.
    pub fn send(&self, span: Span) {
        if self
            .queue
            .try_send(ExportMessage::Span(Box::new(span)))
            .is_err()
        {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of spans that were not sent.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Waits until everything in the queue was sent or dropped, for at most this long. Blocks the thread.
    pub fn flush(&self, most: Duration) {
        let (done, is_done) = std_mpsc::channel();
        if self.queue.try_send(ExportMessage::Flush(done)).is_err() {
            return;
        }
        if is_done.recv_timeout(most).is_err() {
            tracing::warn!("the collector did not receive everything in time");
        }
    }
}
