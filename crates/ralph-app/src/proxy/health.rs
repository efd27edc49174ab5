//! The health endpoint of a proxy, and its client.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::tokens::{AuthMode, BaseUrl, http};

/// The timeout of a response.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The start of every proxy's response.
const GREETING: &str = "agent-loop-proxy ok";

/// The self-description of a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    pub mode: AuthMode,
    /// The listening address.
    pub address: SocketAddr,
}

impl Health {
    /// Returns the text without a line ending.
    pub fn text(&self) -> String {
        let mode = mode_name(self.mode);
        let (version, address) = (source_version(), self.address);
        format!("{GREETING} v={version} mode={mode} addr={address}")
    }

    /// Returns whether this proxy responds, in any version.
    pub async fn responds(&self) -> bool {
        let Ok(base) = BaseUrl::parse(&format!("http://{}", loopback_if_unspecified(self.address)))
        else {
            return false;
        };
        let response = tokio::time::timeout(TIMEOUT, http::get(&base, "/health")).await;
        let Ok(Ok(response)) = response else {
            return false;
        };
        let text = String::from_utf8_lossy(&response.body);
        let contains = |word: &str| text.split_whitespace().any(|found| found == word);
        response.status == 200
            && text.starts_with(GREETING)
            && contains(&format!("mode={}", mode_name(self.mode)))
            && contains(&format!("addr={}", self.address))
    }
}

/// Returns twelve hexadecimal digits that change with ralph's version and with these source files.
pub fn source_version() -> String {
    let mut hasher = Sha256::new();
    for source in [
        env!("CARGO_PKG_VERSION"),
        include_str!("credential.rs"),
        include_str!("gate.rs"),
        include_str!("health.rs"),
        include_str!("lease.rs"),
        include_str!("log.rs"),
        include_str!("route.rs"),
        include_str!("serve.rs"),
        include_str!("workers.rs"),
    ] {
        hasher.update(source);
    }
    super::lease::hex(&hasher.finalize()[..6])
}

pub(super) fn mode_name(mode: AuthMode) -> &'static str {
    match mode {
        AuthMode::Oauth => "oauth",
        AuthMode::ApiKey => "api_key",
        AuthMode::Gateway => "gateway",
    }
}

/// Replaces an unspecified address with the loopback address.
fn loopback_if_unspecified(address: SocketAddr) -> SocketAddr {
    let host = match address.ip() {
        IpAddr::V4(host) if host.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(host) if host.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        host @ (IpAddr::V4(_) | IpAddr::V6(_)) => host,
    };
    SocketAddr::new(host, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_health_text_identifies_the_proxy() {
        let health = Health {
            mode: AuthMode::ApiKey,
            address: "127.0.0.1:18080".parse().unwrap(),
        };
        let version = source_version();
        assert!(version.len() == 12 && version.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let expected = format!("agent-loop-proxy ok v={version} mode=api_key addr=127.0.0.1:18080");
        assert_eq!(health.text(), expected);
    }
}
