//! Tests of the gate's public interface: real streams in, fake hosts on loopback.

#![expect(
    clippy::unwrap_used,
    reason = "a test should fail at the setup step that fails"
)]

mod billing_provider;
mod cassette;
mod connection_reuse;
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
mod reservations;
mod support;
mod tls;
