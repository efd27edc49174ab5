//! A measurement in telemetry.

/// A data point.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MeasuredPoint {
    pub(super) metric: String,
    pub(super) attributes: Vec<(String, String)>,
    pub(super) value: f64,
    /// Whether the value counts since the last upload, instead of since the start of the program.
    pub(super) is_delta: bool,
}
