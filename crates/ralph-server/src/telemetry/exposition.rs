//! Writes metrics in the text format of Prometheus.

use std::collections::HashMap;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::Registry;
use ralph_app::telemetry::{HistogramValue, MetricFamily, MetricKind, MetricValue};

/// The metrics of one request.
#[derive(Debug)]
struct FamilyCollector(Vec<MetricFamily>);

/// Returns the text of metrics.
pub(crate) fn exposition(families: Vec<MetricFamily>) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(FamilyCollector(families)));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

impl Collector for FamilyCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for family in &self.0 {
            let kind = match family.kind {
                MetricKind::Counter => MetricType::Counter,
                MetricKind::Gauge => MetricType::Gauge,
                MetricKind::Histogram => MetricType::Histogram,
            };
            let mut metric = encoder.encode_descriptor(family.name, family.help, None, kind)?;
            for sample in &family.samples {
                if sample.labels.is_empty() {
                    encode_value(&mut metric, family.kind, &sample.value)?;
                } else {
                    let mut labelled = metric.encode_family(&sample.labels)?;
                    encode_value(&mut labelled, family.kind, &sample.value)?;
                }
            }
        }
        Ok(())
    }
}

fn encode_value(
    metric: &mut MetricEncoder<'_>,
    kind: MetricKind,
    value: &MetricValue,
) -> Result<(), fmt::Error> {
    match (kind, value) {
        (MetricKind::Counter, MetricValue::Number(number)) => {
            let exemplar: Option<&Exemplar<NoLabelSet, f64>> = None;
            metric.encode_counter(number, exemplar)
        }
        (_, MetricValue::Number(number)) => metric.encode_gauge(number),
        (_, MetricValue::Histogram(histogram)) => encode_histogram(metric, histogram),
    }
}

fn encode_histogram(
    metric: &mut MetricEncoder<'_>,
    histogram: &HistogramValue,
) -> Result<(), fmt::Error> {
    // The last bucket has no bound.
    let bounds = histogram.bounds().iter().copied().chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = bounds.zip(histogram.counts().iter().copied()).collect();
    let exemplars: Option<&HashMap<usize, Exemplar<NoLabelSet, f64>>> = None;
    metric.encode_histogram(histogram.sum(), histogram.count(), &buckets, exemplars)
}

#[cfg(test)]
mod tests {
    use ralph_app::telemetry::MetricSample;

    use super::*;

    #[test]
    fn families_are_written_as_text() {
        let mut histogram = HistogramValue::new(&[0.1, 1.0]);
        for value in [0.05, 0.5, 5.0] {
            histogram.observe(value);
        }
        let labelled = |value| MetricSample {
            labels: vec![("route", "/runs/{id}".to_owned())],
            value,
        };
        let families = vec![
            MetricFamily {
                name: "seen",
                help: "What was seen",
                kind: MetricKind::Counter,
                samples: vec![labelled(MetricValue::Number(2.0))],
            },
            MetricFamily::number("length", "A length", MetricKind::Gauge, 3.0),
            MetricFamily {
                name: "seconds",
                help: "A duration",
                kind: MetricKind::Histogram,
                samples: vec![labelled(MetricValue::Histogram(histogram))],
            },
        ];
        let text = exposition(families).unwrap();
        for line in [
            "# TYPE seen counter",
            "seen_total{route=\"/runs/{id}\"} 2.0",
            "length 3.0",
            "seconds_bucket{le=\"0.1\",route=\"/runs/{id}\"} 1",
            "seconds_bucket{le=\"1.0\",route=\"/runs/{id}\"} 2",
            "seconds_bucket{le=\"+Inf\",route=\"/runs/{id}\"} 3",
            "seconds_count{route=\"/runs/{id}\"} 3",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
