//! The gate from the outside: real streams in, fake hosts on loopback behind it.

mod dns;
mod policy;
mod support;
mod tls;
