//! Tests of the server through its sockets: a real server, with a scripted model and a local sandbox.

#![expect(
    clippy::unwrap_used,
    reason = "a test whose preparations fail should fail there"
)]

mod access;
mod index;
mod machine;
mod run;
mod streams;
mod supervisor;
mod support;
