//! Names inside the sandbox: an allowed one has an address of `127.1.0.0/16`, any other does not exist.
//!
//! No query ever leaves the gate, so a name that is asked for tells nobody anything.

mod address_map;
mod message;
mod serve;

pub(crate) use address_map::{DnsAddressMap, DnsAddressOwner};
pub(crate) use serve::serve;
