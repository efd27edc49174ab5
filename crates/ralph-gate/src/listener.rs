//! The listeners of the sandbox that lead to the gate.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// The sandbox listener that accepted a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxListener {
    /// The HTTP proxy configured in `HTTP_PROXY` and `HTTPS_PROXY`.
    Proxy,
    /// Port 80 of the addresses assigned to names.
    Http,
    /// Port 443 of the addresses assigned to names.
    Https,
    /// DNS queries, each prefixed with its two-byte length.
    Dns,
    /// The port that adds credentials.
    Credentials,
}

impl SandboxListener {
    /// All listeners.
    pub const ALL: [Self; 5] = [
        Self::Proxy,
        Self::Http,
        Self::Https,
        Self::Dns,
        Self::Credentials,
    ];

    /// Returns the name used between the guest and the gate.
    pub fn name(self) -> &'static str {
        match self {
            Self::Proxy => "proxy",
            Self::Http => "http",
            Self::Https => "https",
            Self::Dns => "dns",
            Self::Credentials => "credentials",
        }
    }

    /// Returns the listener with a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|listener| listener.name() == name)
    }
}

/// The listener and destination of a connection from the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    pub listener: SandboxListener,
    /// The destination address inside the sandbox, if the transport reports it.
    pub address: Option<SocketAddr>,
}

impl Arrival {
    /// A connection to a listener, with an unknown destination address.
    pub fn new(listener: SandboxListener) -> Self {
        Self {
            listener,
            address: None,
        }
    }

    /// A connection to a listener, with its destination address.
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
