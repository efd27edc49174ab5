//! The gate from the outside: real streams in, fake hosts on loopback behind it.

#![expect(
    clippy::unwrap_used,
    reason = "a test whose preparations fail should fail there"
)]

mod billing_provider;
mod cassette;
mod connection_pool;
mod credential_addresses;
mod credentials;
mod dns;
mod escapes;
mod foreign_credentials;
mod limits;
mod meter;
mod overshoot;
mod policy;
mod provider_tools;
mod support;
mod tls;
