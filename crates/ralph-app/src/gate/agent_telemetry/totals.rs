//! Adds up the telemetry of an agent's session.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use ralph_core::ports::AgentMeasurements;
use ralph_gate::{
    InvalidTelemetryError, TelemetryEncoding, TelemetrySignal, TelemetrySink, TelemetryUpload,
};

use super::point::MeasuredPoint;
use super::{json, protobuf};

/// The most names of metrics and events of a session.
const MAX_NAMES: usize = 128;

/// The most series of a program that counts since its start.
const MAX_SERIES: usize = 512;

/// The longest name.
const MAX_NAME_CHARS: usize = 120;

/// The attribute that distinguishes the values of a metric, such as input and output tokens.
const KIND: &str = "type";

/// The telemetry of an agent since the start of its session.
#[derive(Debug, Default)]
pub struct AgentTelemetry {
    totals: Mutex<SessionTotals>,
}

#[derive(Debug, Default)]
struct SessionTotals {
    measured: AgentMeasurements,
    /// The last values of series that count since the start of the program, by name and all attributes.
    cumulative: BTreeMap<(String, String), f64>,
}

impl AgentTelemetry {
    /// Returns the totals of the session, and starts with the next one.
    pub fn drain(&self) -> Option<AgentMeasurements> {
        let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        let SessionTotals {
            mut measured,
            cumulative,
        } = std::mem::take(&mut *totals);
        for ((name, _), value) in cumulative {
            measured.add_metric(name, value, MAX_NAMES);
        }
        (!measured.is_empty()).then_some(measured)
    }
}

impl TelemetrySink for AgentTelemetry {
    fn receive(&self, upload: &TelemetryUpload) -> Result<(), InvalidTelemetryError> {
        let body = &upload.body;
        let (points, names) = match (upload.signal, upload.encoding) {
            (TelemetrySignal::Metrics, TelemetryEncoding::Json) => {
                (json::metrics(body), Some(Vec::new()))
            }
            (TelemetrySignal::Metrics, TelemetryEncoding::Protobuf) => {
                (protobuf::metrics(body), Some(Vec::new()))
            }
            (TelemetrySignal::Logs, TelemetryEncoding::Json) => {
                (Some(Vec::new()), json::log_names(body))
            }
            (TelemetrySignal::Logs, TelemetryEncoding::Protobuf) => {
                (Some(Vec::new()), protobuf::log_names(body))
            }
            // Ralph's own spans describe the work of an agent.
            (TelemetrySignal::Traces, _) => (Some(Vec::new()), Some(Vec::new())),
        };
        let (Some(points), Some(names)) = (points, names) else {
            return Err(InvalidTelemetryError);
        };
        let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        for point in points {
            totals.add(&point);
        }
        for name in names.iter().filter(|name| is_name(name)) {
            totals.measured.add_event(name, MAX_NAMES);
        }
        Ok(())
    }
}

impl SessionTotals {
    fn add(&mut self, point: &MeasuredPoint) {
        let kind = point.attributes.iter().find(|(key, _)| key == KIND);
        let name = kind.map_or_else(
            || point.metric.clone(),
            |(_, kind)| format!("{}.{kind}", point.metric),
        );
        // The agent is not trusted: its names and numbers are limited.
        if !is_name(&name) || !point.value.is_finite() || point.value < 0.0 {
            return;
        }
        if point.is_delta {
            self.measured.add_metric(name, point.value, MAX_NAMES);
            return;
        }
        let mut attributes = point.attributes.clone();
        attributes.sort();
        let key = (name, format!("{attributes:?}"));
        if self.cumulative.len() < MAX_SERIES || self.cumulative.contains_key(&key) {
            self.cumulative.insert(key, point.value);
        }
    }
}

fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    !name.is_empty() && name.len() <= MAX_NAME_CHARS && name.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn upload(signal: TelemetrySignal, body: &serde_json::Value) -> TelemetryUpload {
        TelemetryUpload {
            signal,
            encoding: TelemetryEncoding::Json,
            body: body.to_string().into(),
        }
    }

    fn sum(name: &str, temporality: u64, value: f64) -> serde_json::Value {
        let point = json!({
            "asDouble": value,
            "attributes": [{"key": "type", "value": {"stringValue": "input"}}],
        });
        json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": [
            {"name": name, "sum": {"aggregationTemporality": temporality, "dataPoints": [point]}},
        ]}]}]})
    }

    #[test]
    fn deltas_are_added_and_totals_replaced() {
        let telemetry = AgentTelemetry::default();
        for (name, temporality, value) in [
            ("delta", 1, 2.0),
            ("delta", 1, 3.0),
            ("total", 2, 5.0),
            ("total", 2, 7.0),
            ("wrong", 1, -1.0),
            ("bad\nname", 1, 1.0),
        ] {
            let body = sum(name, temporality, value);
            let received = telemetry.receive(&upload(TelemetrySignal::Metrics, &body));
            assert_eq!(received, Ok(()));
        }
        let logs = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [
            {"body": {"stringValue": "claude_code.api_request"}},
            {"eventName": "claude_code.api_request"},
        ]}]}]});
        telemetry
            .receive(&upload(TelemetrySignal::Logs, &logs))
            .unwrap();
        let measured = telemetry.drain().unwrap();
        let metrics: Vec<_> = measured
            .metrics
            .iter()
            .map(|(n, v)| (n.as_str(), *v))
            .collect();
        assert_eq!(metrics, [("delta.input", 5.0), ("total.input", 7.0)]);
        assert_eq!(measured.events["claude_code.api_request"], 2);
        assert_eq!(telemetry.drain(), None);
        let invalid = upload(TelemetrySignal::Metrics, &json!("text"));
        assert_eq!(telemetry.receive(&invalid), Err(InvalidTelemetryError));
    }
}
