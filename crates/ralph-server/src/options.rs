//! The settings of a server.

use std::net::IpAddr;

/// The settings of a server, from the command line and the environment.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The address to listen on.
    pub host: IpAddr,
    /// The port to listen on; 0 means any free one.
    pub port: u16,
    /// The number of runs that work at the same time.
    pub workers: usize,
}
