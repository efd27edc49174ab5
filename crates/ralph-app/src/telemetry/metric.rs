//! Metrics in a form that every encoder can write.

/// The metrics of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricFamily {
    /// Without the suffix `_total` of counters.
    pub name: &'static str,
    pub help: &'static str,
    pub kind: MetricKind,
    pub samples: Vec<MetricSample>,
}

/// The kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// It only grows until the process ends.
    Counter,
    Gauge,
    Histogram,
}

/// A value with its labels. The sets of labels are bounded: no label contains text of a user or a run.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricSample {
    pub labels: Vec<(&'static str, String)>,
    pub value: MetricValue,
}

/// The value of a sample.
#[derive(Debug, Clone, PartialEq)]
pub enum MetricValue {
    Number(f64),
    Histogram(HistogramValue),
}

/// Observations by size.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramValue {
    bounds: &'static [f64],
    /// The observations up to each bound and above the one before, and those above all bounds.
    counts: Vec<u64>,
    sum: f64,
}

impl MetricFamily {
    /// Creates a family with one sample without labels.
    pub fn number(name: &'static str, help: &'static str, kind: MetricKind, value: f64) -> Self {
        Self {
            name,
            help,
            kind,
            samples: vec![MetricSample {
                labels: Vec::new(),
                value: MetricValue::Number(value),
            }],
        }
    }
}

impl HistogramValue {
    /// Creates a histogram without observations. The bounds ascend.
    pub fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            counts: vec![0; bounds.len() + 1],
            sum: 0.0,
        }
    }

    /// Adds an observation.
    pub fn observe(&mut self, value: f64) {
        let bucket = self.bounds.iter().position(|bound| value <= *bound);
        self.counts[bucket.unwrap_or(self.bounds.len())] += 1;
        self.sum += value;
    }

    /// Returns the bounds without the one above all.
    pub fn bounds(&self) -> &'static [f64] {
        self.bounds
    }

    /// Returns the observations of each bucket; the last one is above all bounds.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the sum of all observations.
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// Returns the number of observations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observation_counts_in_the_first_bucket_that_contains_it() {
        let mut histogram = HistogramValue::new(&[1.0, 5.0]);
        for value in [0.5, 1.0, 2.0, 6.0] {
            histogram.observe(value);
        }
        assert_eq!(histogram.counts(), [2, 1, 1]);
        assert_eq!((histogram.count(), histogram.sum()), (4, 9.5));
    }
}
