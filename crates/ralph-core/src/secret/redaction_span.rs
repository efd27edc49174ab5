//! The parts of a text that must not be seen.

use super::pem;
use super::shapes::ByteClass;

/// How far a secret reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SecretExtent {
    /// Up to this position.
    To(usize),
    /// As long as the bytes are of one class.
    While(ByteClass),
    /// Up to the end of a PEM block.
    Pem,
}

/// Where a secret ends in a text that may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CoverEnd {
    /// The first byte after it.
    pub(super) at: usize,
    /// Whether more text may belong to it.
    pub(super) is_open: bool,
    /// From where on the text must be seen again together with what follows.
    pub(super) hold: usize,
    /// Another secret of this extent whose body starts before here ends at the same place.
    pub(super) shared: usize,
}

impl SecretExtent {
    /// Returns the end of a secret whose bytes are judged from `body` on.
    fn end(self, text: &[u8], body: usize) -> CoverEnd {
        let end = |at: usize, is_open: bool| CoverEnd {
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
                CoverEnd {
                    is_open,
                    hold: if is_open { at } else { text.len() },
                    ..end(at, false)
                }
            }
            Self::Pem => pem::find_end(text, body),
        }
    }
}

/// A secret in a text, as its shape tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DetectedToken {
    /// Where it starts.
    pub(super) from: usize,
    /// Where the bytes start that decide how far it reaches.
    pub(super) body: usize,
    /// How far it reaches.
    pub(super) extent: SecretExtent,
}

/// A part of a text that must not be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RedactionSpan {
    /// Where the reason for it stands.
    pub(super) at: usize,
    /// Where it starts.
    pub(super) from: usize,
    /// Where the bytes start that decide how far it reaches.
    pub(super) body: usize,
    /// How far it reaches.
    pub(super) extent: SecretExtent,
    /// Where it ends in the text at hand.
    pub(super) end: CoverEnd,
    /// The known secret in it.
    pub(super) secret: Option<usize>,
    /// Whether it started before the bytes that are looked at.
    pub(super) continues: bool,
}

impl RedactionSpan {
    /// Covers a token, because of the literal at `at`.
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

    /// Covers a known secret.
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

    /// Returns the cover when the text has grown.
    pub(super) fn extended(self, text: &[u8]) -> Self {
        Self {
            end: self.extent.end(text, self.body),
            ..self
        }
    }

    /// Returns the cover when the bytes before `hold` are done and the first `dropped` are gone;
    /// `None` when it is done too.
    pub(super) fn rebased(self, hold: usize, dropped: usize) -> Option<Self> {
        let goes_on = self.continues || self.from < hold;
        let is_done = goes_on && self.end.at <= hold && !self.end.is_open;
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
            continues: goes_on,
            ..self
        })
    }

    /// Tells whether another cover hides the same bytes.
    pub(super) fn covers_same_bytes(&self, other: &Self) -> bool {
        (self.from, self.body, self.extent) == (other.from, other.body, other.extent)
    }
}
