//! Protects secrets: a type for their values, and a redactor for all output.
//!
//! The main protection is that no secret enters a sandbox or a prompt. The [`Redactor`] is the
//! safety net. Every sink (logs, journal, prompts, pull requests, the live stream) writes through
//! it. It finds:
//!
//! - **known secrets**, by value, in the encodings that programs print them in: plain, base64 and
//!   base64url at each byte offset, hexadecimal, percent-encoded, JSON, XML and shell escapes, and
//!   every line of a multi-line secret on its own; escaped any number of times, and with colour
//!   codes or zero-width characters in between;
//! - **unknown tokens**, by the shapes that major issuers use.
//!
//! It cannot find a known secret that is too short or too common to search for
//! ([`Redactor::unsearchable`]), one that is spaced out, broken across lines, reversed, compressed
//! or encrypted, or an unknown token without a recognisable shape.
//!
//! Redaction is for text that is shown or stored. Text that is executed, such as the content of a
//! file or a command, is checked with [`Redactor::find_known`] and either rejected or unchanged.
//!
//! A stream is redacted as it passes. The output does not depend on the chunks: each decision
//! depends on the bytes from one position on, and exactly those bytes that more input could affect
//! are delayed.

mod encode;
mod escapes;
mod fold;
mod needles;
mod patterns;
mod pem;
mod redaction_span;
mod redactor;
mod searchability;
mod shapes;
mod stream;
mod value;

#[cfg(test)]
mod spelling_tests;
#[cfg(test)]
mod tests;

pub use redactor::{RedactionCounts, Redactor, TokenShapes};
pub use searchability::Unsearchable;
pub use stream::RedactStream;
pub use value::Secret;
