//! Telemetry as JSON.

use serde_json::Value;

use super::point::MeasuredPoint;

/// The names of a temporality that counts since the last upload.
const DELTA: [&str; 2] = ["AGGREGATION_TEMPORALITY_DELTA", "1"];

/// Decodes metrics.
pub(super) fn metrics(body: &[u8]) -> Option<Vec<MeasuredPoint>> {
    let root: Value = parse(body)?;
    let mut points = Vec::new();
    for metric in nested(&root, ["resourceMetrics", "scopeMetrics", "metrics"]) {
        let Some(name) = metric["name"].as_str() else {
            continue;
        };
        for kind in ["sum", "gauge", "histogram"] {
            let data = &metric[kind];
            let temporality = &data["aggregationTemporality"];
            let is_delta = temporality.as_u64() == Some(1)
                || temporality
                    .as_str()
                    .is_some_and(|name| DELTA.contains(&name));
            for point in list(&data["dataPoints"]) {
                let value = ["asDouble", "asInt", "sum"]
                    .iter()
                    .find_map(|key| number(&point[*key]));
                points.extend(value.map(|value| MeasuredPoint {
                    metric: name.to_owned(),
                    attributes: attributes(&point["attributes"]),
                    value,
                    is_delta,
                }));
            }
        }
    }
    Some(points)
}

/// Decodes the names of log records.
pub(super) fn log_names(body: &[u8]) -> Option<Vec<String>> {
    let root: Value = parse(body)?;
    let records = nested(&root, ["resourceLogs", "scopeLogs", "logRecords"]);
    let name = |record: &Value| {
        let named = record["eventName"].as_str().filter(|name| !name.is_empty());
        named
            .or(record["body"]["stringValue"].as_str())
            .map(str::to_owned)
    };
    Some(records.iter().filter_map(|record| name(record)).collect())
}

fn parse(body: &[u8]) -> Option<Value> {
    match serde_json::from_slice(body) {
        Ok(root @ Value::Object(_)) => Some(root),
        Ok(_) | Err(_) => None,
    }
}

fn nested<'a>(root: &'a Value, keys: [&str; 3]) -> Vec<&'a Value> {
    let mut level = vec![root];
    for key in keys {
        level = level
            .into_iter()
            .flat_map(|value| list(&value[key]))
            .collect();
    }
    level
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns a number; OTLP writes integers as text.
fn number(value: &Value) -> Option<f64> {
    value
        .as_f64()
        .or_else(|| ralph_core::parse_value(value.as_str()?))
}

fn attributes(value: &Value) -> Vec<(String, String)> {
    let pairs = list(value).iter().filter_map(|pair| {
        let text = pair["value"]["stringValue"].as_str()?;
        Some((pair["key"].as_str()?.to_owned(), text.to_owned()))
    });
    pairs.collect()
}
