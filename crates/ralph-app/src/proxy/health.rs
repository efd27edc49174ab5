//! What a proxy says about itself at `/health`, and asking it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::tokens::{AuthMode, BaseUrl, http};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The first words of every proxy.
const GREETING: &str = "agent-loop-proxy ok";

/// What a proxy says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// How its credential is shown.
    pub mode: AuthMode,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Health {
    /// Returns the text, without a line end.
    pub fn text(&self) -> String {
        let mode = mode_name(self.mode);
        let (version, address) = (source_version(), self.address);
        format!("{GREETING} v={version} mode={mode} addr={address}")
    }

    /// Asks whether this proxy answers; one of another version does, too.
    pub async fn responds(&self) -> bool {
        let Ok(base) = BaseUrl::parse(&format!("http://{}", loopback_if_unspecified(self.address)))
        else {
            return false;
        };
        let asked = tokio::time::timeout(TIMEOUT, http::get(&base, "/health")).await;
        let Ok(Ok(answer)) = asked else {
            return false;
        };
        let text = String::from_utf8_lossy(&answer.body);
        let says = |word: &str| text.split_whitespace().any(|said| said == word);
        answer.status == 200
            && text.starts_with(GREETING)
            && says(&format!("mode={}", mode_name(self.mode)))
            && says(&format!("addr={}", self.address))
    }
}

/// Returns twelve digits that differ when the proxy's source does.
pub fn source_version() -> String {
    let mut hasher = Sha256::new();
    for source in [
        env!("CARGO_PKG_VERSION"),
        include_str!("credential.rs"),
        include_str!("health.rs"),
        include_str!("lease.rs"),
        include_str!("log.rs"),
        include_str!("route.rs"),
        include_str!("serve.rs"),
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

/// Returns where this machine reaches a place to listen.
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
