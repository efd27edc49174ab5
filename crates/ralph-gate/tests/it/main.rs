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
mod ledger;
mod limits;
mod lines;
mod meter;
mod named;
mod overshoot;
mod policy;
mod provider_tools;
mod support;
mod tls;
