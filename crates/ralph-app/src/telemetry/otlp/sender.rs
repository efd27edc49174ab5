//! Sends batches of spans, and metrics in an interval.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Request, StatusCode};
use jiff::Timestamp;
use ralph_core::ports::Clock;
use ralph_providers::http::HttpClient;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};

use super::document;
use super::exporter::{ExportMessage, MetricReader};
use super::settings::OtlpSettings;
use super::span::Span;

/// The most spans of a request.
const MAX_BATCH: usize = 512;

/// How long a span waits for others of its batch.
const BATCH_DELAY: Duration = Duration::from_secs(1);

/// The attempts for one batch.
const MAX_ATTEMPTS: u32 = 3;

/// The time before the second attempt; it doubles.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Why a batch was not accepted.
enum SendFailure {
    /// Another attempt may succeed.
    Temporary(String),
    Permanent(String),
}

struct BatchSender {
    settings: OtlpSettings,
    clock: Arc<dyn Clock>,
    metrics: MetricReader,
    client: HttpClient,
    started: Timestamp,
    batch: Vec<Span>,
    lost: Arc<AtomicU64>,
    /// Whether the last request failed: a failure is reported once, until a request succeeds.
    is_failing: bool,
}

/// Sends until the exporter is dropped.
pub(super) async fn run_sender(
    settings: OtlpSettings,
    clock: Arc<dyn Clock>,
    metrics: MetricReader,
    mut messages: mpsc::Receiver<ExportMessage>,
    lost: Arc<AtomicU64>,
) {
    let client = match HttpClient::new(&settings.network, settings.timeout) {
        Ok(client) => client,
        Err(error) => {
            tracing::warn!(%error, "telemetry is not exported");
            return;
        }
    };
    let mut ticks = interval_at(Instant::now() + settings.interval, settings.interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut sender = BatchSender {
        started: clock.now(),
        settings,
        clock,
        metrics,
        client,
        batch: Vec::new(),
        lost,
        is_failing: false,
    };
    loop {
        let has_spans = !sender.batch.is_empty();
        tokio::select! {
            message = messages.recv() => match message {
                Some(ExportMessage::Span(span)) => {
                    sender.batch.push(*span);
                    if sender.batch.len() >= MAX_BATCH {
                        sender.send_spans().await;
                    }
                }
                Some(ExportMessage::Flush(done)) => {
                    sender.send_spans().await;
                    sender.send_metrics().await;
                    if done.send(()).is_err() {
                        tracing::debug!("the flush took too long");
                    }
                }
                None => return,
            },
            () = sleep(BATCH_DELAY), if has_spans => sender.send_spans().await,
            _ = ticks.tick() => sender.send_metrics().await,
        }
    }
}

impl BatchSender {
    async fn send_spans(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        let Some(address) = self.settings.traces.clone().filter(|_| !batch.is_empty()) else {
            return;
        };
        let body = document::traces(&batch, &self.settings);
        if !self.post(&address, &body).await {
            self.lost.fetch_add(batch.len() as u64, Ordering::Relaxed);
        }
    }

    async fn send_metrics(&mut self) {
        let Some(address) = self.settings.metrics.clone() else {
            return;
        };
        let times = (self.started, self.clock.now());
        let body = document::metrics(&(self.metrics)(), times, &self.settings);
        self.post(&address, &body).await;
    }

    /// Sends a body. Returns whether the collector accepted it.
    async fn post(&mut self, address: &str, body: &Value) -> bool {
        let mut delay = RETRY_DELAY;
        for attempt in 1..=MAX_ATTEMPTS {
            let why = match self.try_post(address, body).await {
                Ok(()) => {
                    self.is_failing = false;
                    return true;
                }
                Err(SendFailure::Temporary(why)) if attempt < MAX_ATTEMPTS && !self.is_failing => {
                    tracing::debug!(why, "the collector is asked again");
                    sleep(delay).await;
                    delay *= 2;
                    continue;
                }
                Err(SendFailure::Temporary(why) | SendFailure::Permanent(why)) => why,
            };
            if !self.is_failing {
                tracing::warn!(why, "telemetry was not exported");
            }
            self.is_failing = true;
            return false;
        }
        false
    }

    async fn try_post(&self, address: &str, body: &Value) -> Result<(), SendFailure> {
        let request = self.request(address, body).map_err(|error| {
            // A header may contain a credential, so the message does not repeat it.
            SendFailure::Permanent(format!("the request is invalid: {error}"))
        })?;
        let sent = timeout(self.settings.timeout, self.client.send(request)).await;
        let response = match sent {
            Err(_) => return Err(SendFailure::Permanent("no response in time".to_owned())),
            // Nothing listens there: the next batch tries again.
            Ok(Err(error)) => return Err(SendFailure::Permanent(error.root_cause())),
            Ok(Ok(response)) => response,
        };
        let status = response.status();
        let is_temporary = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        if status.is_success() {
            Ok(())
        } else if is_temporary {
            Err(SendFailure::Temporary(format!("status {status}")))
        } else {
            Err(SendFailure::Permanent(format!("status {status}")))
        }
    }

    fn request(
        &self,
        address: &str,
        body: &Value,
    ) -> Result<Request<Full<bytes::Bytes>>, hyper::http::Error> {
        let mut request = Request::post(address)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::from(body.to_string()))?;
        for (name, value) in &self.settings.headers {
            let name = HeaderName::try_from(name.as_str())?;
            let mut value = HeaderValue::try_from(value.expose())?;
            value.set_sensitive(true);
            request.headers_mut().insert(name, value);
        }
        Ok(request)
    }
}
