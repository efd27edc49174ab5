//! Spans of text to redact.

use super::pem;
use super::shapes::ByteClass;

/// The extent of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SecretExtent {
    /// Up to this position.
    To(usize),
    /// As long as the bytes are of one class.
    While(ByteClass),
    /// Up to the end of a PEM block.
    Pem,
}

/// The end of a secret in text that may continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SpanEnd {
    /// The first byte after the secret.
    pub(super) at: usize,
    /// Whether more text may belong to the secret.
    pub(super) is_open: bool,
    /// Text from this position on must be examined again together with further input.
    pub(super) hold: usize,
    /// A secret of this extent with a body that starts before this position has the same end.
    pub(super) shared: usize,
}

impl SecretExtent {
    /// Returns the end of a secret, with its extent determined from `body` on.
    fn end(self, text: &[u8], body: usize) -> SpanEnd {
        let end = |at: usize, is_open: bool| SpanEnd {
            at,
            is_open,
            hold: text.len(),
            shared: at,
        };
        match self {
            Self::To(at) => end(at, false),
            Self::While(class) => {
                let (run, is_open) = class.reach(&text[body..]);
                let at = body + run;
                SpanEnd {
                    is_open,
                    hold: if is_open { at } else { text.len() },
                    ..end(at, false)
                }
            }
            Self::Pem => pem::find_end(text, body),
        }
    }
}

/// A secret that was detected by its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DetectedToken {
    pub(super) from: usize,
    /// Start of the bytes that determine the extent.
    pub(super) body: usize,
    pub(super) extent: SecretExtent,
}

/// A span of text to redact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RedactionSpan {
    /// Position of the literal or needle that caused it.
    pub(super) at: usize,
    pub(super) from: usize,
    /// Start of the bytes that determine the extent.
    pub(super) body: usize,
    pub(super) extent: SecretExtent,
    /// The end in the text seen so far.
    pub(super) end: SpanEnd,
    /// Index of the known secret, if any.
    pub(super) secret: Option<usize>,
    /// Whether it started before the examined bytes.
    pub(super) continues: bool,
}

impl RedactionSpan {
    /// Creates a span for a token, caused by the literal at `at`.
    pub(super) fn for_token(text: &[u8], at: usize, token: DetectedToken) -> Self {
        let DetectedToken { from, body, extent } = token;
        Self {
            at,
            from,
            body,
            extent,
            end: extent.end(text, body),
            secret: None,
            continues: false,
        }
    }

    /// Creates a span for a known secret.
    pub(super) fn for_known_secret(text: &[u8], at: usize, length: usize, secret: usize) -> Self {
        let whole = DetectedToken {
            from: at,
            body: at,
            extent: SecretExtent::To(at + length),
        };
        Self {
            secret: Some(secret),
            ..Self::for_token(text, at, whole)
        }
    }

    /// Recomputes the end after the text has grown.
    pub(super) fn extended(self, text: &[u8]) -> Self {
        Self {
            end: self.extent.end(text, self.body),
            ..self
        }
    }

    /// Adjusts the span after the bytes before `hold` were written and the first `dropped` bytes
    /// were removed; `None` if the span is complete, too.
    pub(super) fn rebased(self, hold: usize, dropped: usize) -> Option<Self> {
        let is_continued = self.continues || self.from < hold;
        let is_done = is_continued && self.end.at <= hold && !self.end.is_open;
        (!is_done).then(|| Self {
            at: 0,
            from: self.from.max(hold) - dropped,
            body: self.body.max(hold) - dropped,
            extent: match self.extent {
                SecretExtent::While(_) | SecretExtent::Pem if self.end.is_open => self.extent,
                SecretExtent::To(_) | SecretExtent::While(_) | SecretExtent::Pem => {
                    SecretExtent::To(self.end.at - dropped)
                }
            },
            continues: is_continued,
            ..self
        })
    }

    /// Returns whether another span hides the same bytes.
    pub(super) fn covers_same_bytes(&self, other: &Self) -> bool {
        (self.from, self.body, self.extent) == (other.from, other.body, other.extent)
    }
}
