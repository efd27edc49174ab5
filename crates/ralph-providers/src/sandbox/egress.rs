//! Outbound connections of a sandbox without a network, served by the host.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use async_trait::async_trait;
use ralph_guest::wire::Duplex;

pub use ralph_guest::wire::ListenKind;

/// The directory of the egress files inside a sandbox.
pub const EGRESS_FILES_DIRECTORY: &str = "/workspace/.way-out";

/// A listener inside a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressListener {
    /// Identifies its connections.
    pub name: String,
    /// Such as `127.0.0.1:3128`.
    pub address: String,
    pub listening: ListenKind,
}

/// A connection from inside a sandbox.
#[derive(Debug)]
pub struct EgressConnection {
    /// The name of the listener.
    pub listener: String,
    /// The address that was connected to.
    pub local: SocketAddr,
    pub stream: Duplex,
}

/// Serves connections from inside a sandbox.
#[async_trait]
pub trait SandboxEgress: Send + Sync {
    /// Returns the listeners.
    fn listeners(&self) -> Vec<EgressListener>;
    /// Returns the variables that commands need to use it.
    fn environment(&self) -> BTreeMap<String, String>;
    /// Returns the files that programs need to use it: their contents in
    /// [`EGRESS_FILES_DIRECTORY`], by name.
    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        BTreeMap::new()
    }
    /// Serves one connection until it ends.
    async fn serve(&self, connection: EgressConnection);
}
