//! The one way out of a sandbox without a network: connections inside that somebody here answers.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use async_trait::async_trait;
use ralph_guest::wire::Duplex;

pub use ralph_guest::wire::ListenKind;

/// The directory of a way out's files inside of a sandbox.
pub const EGRESS_FILES_DIRECTORY: &str = "/workspace/.way-out";

/// An address inside of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressListener {
    /// What its connections are told apart by.
    pub name: String,
    /// The address, as `127.0.0.1:3128`.
    pub address: String,
    /// What it listens for.
    pub listening: ListenKind,
}

/// A connection that something in a sandbox made.
#[derive(Debug)]
pub struct EgressConnection {
    /// The listener it came to.
    pub listener: String,
    /// The address it was made to.
    pub local: SocketAddr,
    /// The connection.
    pub stream: Duplex,
}

/// Answers what commands in a sandbox connect to.
#[async_trait]
pub trait SandboxEgress: Send + Sync {
    /// Returns the addresses that are listened on.
    fn listeners(&self) -> Vec<EgressListener>;
    /// Returns what commands have to know to use it.
    fn environment(&self) -> BTreeMap<String, String>;
    /// Returns what programs have to read to use it: the contents of files in [`EGRESS_FILES_DIRECTORY`], by name.
    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        BTreeMap::new()
    }
    /// Sees one connection to its end.
    async fn serve(&self, connection: EgressConnection);
}
