//! The gate from the outside: real streams in, fake hosts on loopback behind it.

#![expect(
    clippy::unwrap_used,
    reason = "a test whose preparations fail should fail there"
)]

mod cassette;
mod credentials;
mod dns;
mod escapes;
mod foreign;
mod limits;
mod lines;
mod meter;
mod named;
mod policy;
mod provider_tools;
mod support;
mod tls;
