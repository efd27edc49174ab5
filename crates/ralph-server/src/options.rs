//! The settings of a server.

use std::net::IpAddr;
use std::path::PathBuf;

use ralph_core::secret::Secret;

use crate::auth::PublicUrl;

/// The settings of a server, from the command line and the environment.
#[derive(Debug)]
pub struct ServeOptions {
    /// The address to listen on.
    pub host: IpAddr,
    /// The port to listen on; 0 means any free one.
    pub port: u16,
    /// The number of runs that work at the same time.
    pub workers: usize,
    /// The token of programs; none means a random one.
    pub token: Option<Secret>,
    /// The certificate of the server; without it connections are not encrypted.
    pub tls: Option<TlsFiles>,
    /// Whether a proxy encrypts the connections and adds `X-Forwarded-For`.
    pub behind_proxy: bool,
    /// The address for users, if it is not the one that the server listens on.
    pub public_url: Option<PublicUrl>,
}

impl ServeOptions {
    /// Returns the settings of a server on this machine.
    pub fn local(port: u16, workers: usize) -> Self {
        Self {
            host: IpAddr::from([127, 0, 0, 1]),
            port,
            workers,
            token: None,
            tls: None,
            behind_proxy: false,
            public_url: None,
        }
    }
}

/// The files of a TLS certificate, as PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by those of its issuers.
    pub certificate: PathBuf,
    pub key: PathBuf,
}
