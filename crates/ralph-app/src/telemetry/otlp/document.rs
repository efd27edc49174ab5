//! The JSON bodies of OTLP.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::settings::OtlpSettings;
use super::span::{Span, SpanStatus, SpanValue};
use crate::telemetry::metric::{
    HistogramValue, MetricFamily, MetricKind, MetricSample, MetricValue,
};

/// The longest text of an attribute, in bytes.
const MAX_TEXT_BYTES: usize = 1024;

/// The code of an error in OTLP.
const STATUS_ERROR: u32 = 2;

/// The kind of a span inside of a program in OTLP.
const KIND_INTERNAL: u32 = 1;

/// The values of counters since the start of the process in OTLP.
const CUMULATIVE: u32 = 2;

/// Returns the body of a request with spans.
pub(super) fn traces(spans: &[Span], settings: &OtlpSettings) -> Value {
    json!({"resourceSpans": [{
        "resource": resource(settings),
        "scopeSpans": [{
            "scope": scope(),
            "spans": spans.iter().map(span).collect::<Vec<_>>(),
        }],
    }]})
}

/// Returns the body of a request with metrics.
pub(super) fn metrics(
    families: &[MetricFamily],
    (started, now): (Timestamp, Timestamp),
    settings: &OtlpSettings,
) -> Value {
    let times = (nanoseconds(started), nanoseconds(now));
    json!({"resourceMetrics": [{
        "resource": resource(settings),
        "scopeMetrics": [{
            "scope": scope(),
            "metrics": families.iter().map(|family| metric(family, &times)).collect::<Vec<_>>(),
        }],
    }]})
}

fn resource(settings: &OtlpSettings) -> Value {
    let attributes = settings.resource.iter();
    let attributes =
        attributes.map(|(key, value)| json!({"key": key, "value": {"stringValue": value}}));
    json!({"attributes": attributes.collect::<Vec<_>>()})
}

fn scope() -> Value {
    json!({"name": "ralph", "version": env!("CARGO_PKG_VERSION")})
}

fn span(span: &Span) -> Value {
    let attributes = span.attributes.iter();
    let attributes = attributes.map(|(key, value)| json!({"key": key, "value": attribute(value)}));
    let mut json = json!({
        "traceId": span.trace,
        "spanId": span.id,
        "name": span.name,
        "kind": KIND_INTERNAL,
        "startTimeUnixNano": nanoseconds(span.start),
        "endTimeUnixNano": nanoseconds(span.end),
        "attributes": attributes.collect::<Vec<_>>(),
    });
    if let Some(parent) = &span.parent {
        json["parentSpanId"] = parent.as_str().into();
    }
    if span.status == SpanStatus::Error {
        json["status"] = json!({"code": STATUS_ERROR});
    }
    json
}

fn attribute(value: &SpanValue) -> Value {
    match value {
        SpanValue::Text(text) => {
            let end = text.floor_char_boundary(MAX_TEXT_BYTES);
            json!({"stringValue": &text[..end]})
        }
        // OTLP writes integers as text.
        SpanValue::Number(number) => json!({"intValue": number.to_string()}),
        SpanValue::Decimal(number) => json!({"doubleValue": number}),
        SpanValue::Flag(flag) => json!({"boolValue": flag}),
    }
}

fn metric(family: &MetricFamily, times: &(String, String)) -> Value {
    let points: Vec<Value> = family
        .samples
        .iter()
        .map(|sample| point(sample, times))
        .collect();
    let data = match family.kind {
        MetricKind::Counter => (
            "sum",
            json!({"dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": true}),
        ),
        MetricKind::Gauge => ("gauge", json!({"dataPoints": points})),
        MetricKind::Histogram => (
            "histogram",
            json!({"dataPoints": points, "aggregationTemporality": CUMULATIVE}),
        ),
    };
    json!({"name": family.name, "description": family.help, data.0: data.1})
}

fn point(sample: &MetricSample, (started, now): &(String, String)) -> Value {
    let labels = sample.labels.iter();
    let labels = labels.map(|(key, value)| json!({"key": key, "value": {"stringValue": value}}));
    let mut point = json!({
        "startTimeUnixNano": started,
        "timeUnixNano": now,
        "attributes": labels.collect::<Vec<_>>(),
    });
    match &sample.value {
        MetricValue::Number(number) => point["asDouble"] = (*number).into(),
        MetricValue::Histogram(histogram) => add_histogram(&mut point, histogram),
    }
    point
}

fn add_histogram(point: &mut Value, histogram: &HistogramValue) {
    let counts = histogram.counts().iter();
    point["count"] = histogram.count().to_string().into();
    point["sum"] = histogram.sum().into();
    point["explicitBounds"] = histogram.bounds().into();
    point["bucketCounts"] = counts.map(ToString::to_string).collect();
}

/// Returns a time as OTLP writes it; a time before 1970 counts as 1970.
fn nanoseconds(at: Timestamp) -> String {
    at.as_nanosecond().max(0).to_string()
}
