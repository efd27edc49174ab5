//! Counts requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::{MatchedPath, Request};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use ralph_app::telemetry::{HistogramValue, MetricFamily, MetricKind, MetricSample, MetricValue};

/// The bounds of the durations of requests, in seconds.
const DURATIONS: &[f64] = &[0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0];

/// The route of requests that no route matches.
const NO_ROUTE: &str = "none";

/// The route of a response: the pattern, never the path, so that the number of labels is bounded.
#[derive(Debug, Clone)]
pub(crate) struct RouteLabel(String);

/// The measurements of requests; clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerMetrics {
    shared: Arc<ServerCounts>,
}

#[derive(Debug, Default)]
struct ServerCounts {
    requests: Mutex<BTreeMap<RequestKey, HistogramValue>>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RequestKey {
    method: &'static str,
    route: String,
    status: u16,
}

impl ServerMetrics {
    /// Counts a request with its response.
    pub(crate) fn count_request(
        &self,
        method: &Method,
        route: Option<&RouteLabel>,
        status: StatusCode,
        duration: Duration,
    ) {
        let key = RequestKey {
            method: method_label(method),
            route: route.map_or_else(|| NO_ROUTE.to_owned(), |route| route.0.clone()),
            status: status.as_u16(),
        };
        let mut requests = self.requests();
        let durations = requests.entry(key);
        let durations = durations.or_insert_with(|| HistogramValue::new(DURATIONS));
        durations.observe(duration.as_secs_f64());
    }

    fn requests(&self) -> MutexGuard<'_, BTreeMap<RequestKey, HistogramValue>> {
        let requests = self.shared.requests.lock();
        requests.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the durations of all requests.
    pub(crate) fn family(&self) -> MetricFamily {
        let requests = self.requests();
        let requests = requests.iter().map(|(key, durations)| MetricSample {
            labels: vec![
                ("method", key.method.to_owned()),
                ("route", key.route.clone()),
                ("status", key.status.to_string()),
            ],
            value: MetricValue::Histogram(durations.clone()),
        });
        MetricFamily {
            name: "ralph_http_request_duration_seconds",
            help: "Duration of requests until the response begins",
            kind: MetricKind::Histogram,
            samples: requests.collect(),
        }
    }
}

/// Returns a number as a metric.
#[expect(
    clippy::cast_precision_loss,
    reason = "metrics are floating-point numbers"
)]
pub(super) fn number(count: usize) -> f64 {
    count as f64
}

/// Returns the label of a method; clients can send any word.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// Adds the route to a response, for its measurement.
pub(crate) async fn label_route(request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    if let Some(route) = route {
        let label = RouteLabel(route.as_str().to_owned());
        response.extensions_mut().insert(label);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_methods_share_a_label() {
        let invented = Method::from_bytes(b"INVENTED").unwrap();
        assert_eq!(method_label(&invented), "other");
        assert_eq!(method_label(&Method::PUT), "PUT");
    }
}
