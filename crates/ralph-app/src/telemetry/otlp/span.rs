//! Spans.

use jiff::Timestamp;

/// A finished span.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// 32 hexadecimal digits.
    pub trace: String,
    /// 16 hexadecimal digits.
    pub id: String,
    pub parent: Option<String>,
    pub name: &'static str,
    pub start: Timestamp,
    pub end: Timestamp,
    pub attributes: Vec<(&'static str, SpanValue)>,
    pub status: SpanStatus,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum SpanValue {
    Text(String),
    Number(u64),
    Decimal(f64),
    Flag(bool),
}

/// Whether the work of a span succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanStatus {
    Unset,
    Error,
}

impl SpanStatus {
    /// Returns the status of work that succeeded or not.
    pub fn for_success(is_success: bool) -> Self {
        if is_success { Self::Unset } else { Self::Error }
    }
}
