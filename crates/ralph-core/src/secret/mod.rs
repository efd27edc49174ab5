//! Secrets out of sight: a type for those we hold, a redactor for what everybody else prints.
//!
//! The real protection is that a secret is not there: none enters a sandbox or a prompt. The
//! [`Redactor`] is the net below that. Every sink (logs, journal, prompts, pull requests, the live
//! stream) writes through it. It finds two kinds of things:
//!
//! - **known secrets**, by value, in the encodings that programs print them in: plain, base64 and
//!   base64url at each byte offset, hexadecimal, percent-encoded, JSON, XML and shell escapes, and
//!   every line of a multi-line secret on its own; escaped any number of times, and with colour codes
//!   or zero-width characters in between;
//! - **unknown tokens**, by the shapes that the big issuers give theirs.
//!
//! What it cannot find: a known secret that is too short or too common to search for
//! ([`Redactor::unsearchable`]), one that is spaced out, broken across lines, reversed, compressed or
//! encrypted, and an unknown token without a telling shape.
//!
//! Redaction is for text that is shown or stored. Text that is performed, such as the content of a
//! file or a command, is checked with [`Redactor::find_known`] and refused or left as it is.
//!
//! A stream is redacted as it passes. Whatever the chunks are, the output is that of the whole
//! text: each decision depends on the bytes from one position on, and where more bytes could
//! change it, exactly those bytes wait.

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
