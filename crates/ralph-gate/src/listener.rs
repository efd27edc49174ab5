//! The ways into the gate.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// Which of the sandbox's listeners a connection came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxListener {
    /// The HTTP proxy that `HTTP_PROXY` and `HTTPS_PROXY` name.
    Proxy,
    /// Port 80 of the addresses that names are given.
    Http,
    /// Port 443 of the addresses that names are given.
    Https,
    /// Queries for names, each with its length in two bytes before it.
    Dns,
    /// The port that adds credentials.
    Credentials,
}

impl SandboxListener {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Proxy,
        Self::Http,
        Self::Https,
        Self::Dns,
        Self::Credentials,
    ];

    /// Returns the name that the two ends of the sandbox's connection know it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Proxy => "proxy",
            Self::Http => "http",
            Self::Https => "https",
            Self::Dns => "dns",
            Self::Credentials => "credentials",
        }
    }

    /// Finds one by its name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|listener| listener.name() == name)
    }
}

/// How a connection arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The listener that took it.
    pub listener: SandboxListener,
    /// The address inside the sandbox that was connected to, where the carrier can tell.
    pub address: Option<SocketAddr>,
}

impl Arrival {
    /// Comes through a listener, at an address that is not known.
    pub fn new(listener: SandboxListener) -> Self {
        Self {
            listener,
            address: None,
        }
    }

    /// Comes through a listener at an address.
    pub fn with_address(listener: SandboxListener, address: SocketAddr) -> Self {
        Self {
            listener,
            address: Some(address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for listener in SandboxListener::ALL {
            assert_eq!(SandboxListener::parse(listener.name()), Some(listener));
        }
        assert_eq!(SandboxListener::parse("smtp"), None);
    }
}
