//! Placeholder until the redactor lands.
use std::borrow::Cow;
/// Redactor.
#[derive(Debug, Clone, Default)]
pub struct Redactor;
impl Redactor {
    /// Redacts.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        Cow::Borrowed(text)
    }
    /// Redacts bytes.
    pub fn redact_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        Cow::Borrowed(bytes)
    }
}
