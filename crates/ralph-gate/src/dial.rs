//! Connects to names: resolves and checks them in the gate, then connects to exactly the addresses
//! that were checked.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ralph_core::net::{EgressDecider, EgressDecision, EgressReason, Endpoint, Host};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::Reachable;
use crate::address::AddressRefusal;

/// The number of addresses tried per name.
const MAX_ATTEMPTS: usize = 4;

/// Resolves names.
#[async_trait]
pub trait Resolver: Send + Sync {
    /// Returns the addresses of an endpoint.
    async fn lookup(&self, endpoint: &Endpoint) -> io::Result<Vec<SocketAddr>>;
}

/// Resolves names with the system resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn lookup(&self, endpoint: &Endpoint) -> io::Result<Vec<SocketAddr>> {
        if let Some(address) = endpoint.host.address() {
            return Ok(vec![SocketAddr::new(address, endpoint.port)]);
        }
        // `localhost` is always this machine. Hosts files do not contain names with a trailing dot.
        if endpoint.host.name() == Some("localhost") {
            let loopback = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            return Ok(loopback
                .map(|address: IpAddr| SocketAddr::new(address, endpoint.port))
                .into());
        }
        // The trailing dot prevents the system from appending its search domains.
        let name = format!("{}.", endpoint.host);
        let found = tokio::net::lookup_host((name.as_str(), endpoint.port)).await?;
        Ok(found.collect())
    }
}

/// The reason a connection failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DialError {
    /// The gate must not connect to any address of the name.
    #[error("`{host}` resolves to `{address}`, which is {refusal}")]
    Refused {
        host: Host,
        address: SocketAddr,
        refusal: AddressRefusal,
    },
    /// The name does not resolve.
    #[error("cannot resolve `{host}`: {why}")]
    NoAddress { host: Host, why: String },
    /// No connection to the endpoint can be established.
    #[error("`{endpoint}` is unreachable: {why}")]
    Unreachable { endpoint: Endpoint, why: String },
    /// The certificate of the host is not trusted.
    #[error("the certificate of `{endpoint}` is not trusted: {why}")]
    Untrusted { endpoint: Endpoint, why: String },
}

impl DialError {
    pub(crate) fn decision(&self) -> EgressDecision {
        let reason = match self {
            Self::Refused { refusal, .. } => match refusal {
                AddressRefusal::NotPublic => EgressReason::PrivateAddress,
                AddressRefusal::OwnAddress => EgressReason::HostAddress,
            },
            Self::NoAddress { .. } | Self::Unreachable { .. } => EgressReason::Unreachable,
            Self::Untrusted { .. } => EgressReason::UntrustedCertificate,
        };
        EgressDecision::denied(reason, EgressDecider::Gate)
    }
}

/// Connects to endpoints.
#[derive(Clone)]
pub(crate) struct Dialer {
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) reachable: Reachable,
    pub(crate) connect_timeout: Duration,
}

impl Dialer {
    pub(crate) async fn dial(&self, endpoint: &Endpoint) -> Result<TcpStream, DialError> {
        let mut last = None;
        for address in self.addresses(endpoint).await? {
            match timeout(self.connect_timeout, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "cannot disable Nagle's algorithm");
                    }
                    return Ok(stream);
                }
                Ok(Err(error)) => last = Some(error.to_string()),
                Err(_) => {
                    last = Some(format!(
                        "no connection after {}s",
                        self.connect_timeout.as_secs()
                    ));
                }
            }
        }
        Err(DialError::Unreachable {
            endpoint: endpoint.clone(),
            why: last.unwrap_or_default(),
        })
    }

    /// Returns the addresses that the gate may connect to; at least one.
    async fn addresses(&self, endpoint: &Endpoint) -> Result<Vec<SocketAddr>, DialError> {
        let no_address = |why: String| DialError::NoAddress {
            host: endpoint.host.clone(),
            why,
        };
        let found = match timeout(self.connect_timeout, self.resolver.lookup(endpoint)).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => return Err(no_address(error.to_string())),
            Err(_) => return Err(no_address("the lookup timed out".to_owned())),
        };
        let mut first_refused = None;
        let mut checked = Vec::new();
        for address in found {
            match self.reachable.refusal(address) {
                None if checked.len() < MAX_ATTEMPTS => checked.push(address),
                None => break,
                Some(refusal) => {
                    first_refused.get_or_insert((address, refusal));
                }
            }
        }
        match (checked.is_empty(), first_refused) {
            (false, _) => Ok(checked),
            (true, Some((address, refusal))) => Err(DialError::Refused {
                host: endpoint.host.clone(),
                address,
                refusal,
            }),
            (true, None) => Err(no_address("it has no addresses".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn names_that_resolve_to_own_public_addresses_are_refused() {
        let dialer = Dialer {
            resolver: Arc::new(SystemResolver),
            reachable: Reachable::with_own_addresses(&["93.184.216.34"]),
            connect_timeout: Duration::from_millis(100),
        };
        for endpoint in ["93.184.216.34:443", "[::ffff:93.184.216.34]:22"] {
            let endpoint = Endpoint::parse(endpoint, 1).unwrap();
            let error = dialer.dial(&endpoint).await.unwrap_err();
            assert_eq!(error.decision().reason, EgressReason::HostAddress);
            let text = error.to_string();
            assert!(
                text.ends_with("which is an address of this machine"),
                "{text}"
            );
        }
    }

    #[tokio::test]
    async fn addresses_and_localhost_need_no_lookup() {
        for (endpoint, expected) in [
            ("localhost:4000", vec!["127.0.0.1:4000", "[::1]:4000"]),
            ("10.0.0.1:80", vec!["10.0.0.1:80"]),
            ("[::1]:80", vec!["[::1]:80"]),
        ] {
            let parsed = Endpoint::parse(endpoint, 1).unwrap();
            let found = SystemResolver.lookup(&parsed).await.unwrap();
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!(found, expected, "{endpoint}");
        }
    }
}
