//! DNS inside the sandbox: an allowed name resolves to an address in `127.1.0.0/16`; all others do
//! not exist.
//!
//! Queries never leave the gate, so they cannot leak data.

mod address_map;
mod message;
mod serve;

pub(crate) use address_map::{DnsAddressMap, DnsAddressOwner};
pub(crate) use serve::serve;
