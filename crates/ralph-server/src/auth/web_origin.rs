//! The addresses under which browsers may use this server: exact lists for `Host` and `Origin`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ralph_core::net::Host;
use ralph_core::parse_value;

/// Whether connections are encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WebScheme {
    /// Not encrypted.
    Http,
    /// Encrypted with TLS.
    Https,
}

impl WebScheme {
    /// Returns the scheme as in a URL.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// An origin: scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WebOrigin {
    pub(crate) scheme: WebScheme,
    pub(crate) host: Host,
    pub(crate) port: u16,
}

impl WebOrigin {
    /// Parses an origin as browsers send it, such as `http://127.0.0.1:8000`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (scheme, authority) = text.split_once("://")?;
        let scheme = match scheme {
            "http" => WebScheme::Http,
            "https" => WebScheme::Https,
            _ => return None,
        };
        let (host, port) = parse_authority(authority)?;
        Some(Self {
            scheme,
            host,
            port: port.unwrap_or_else(|| scheme.default_port()),
        })
    }

    /// Returns whether a `Host` header names this origin.
    fn has_authority(&self, host: &Host, port: Option<u16>) -> bool {
        self.host == *host && self.port == port.unwrap_or_else(|| self.scheme.default_port())
    }
}

impl fmt::Display for WebOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.host)?;
        if self.port == self.scheme.default_port() {
            return Ok(());
        }
        write!(f, ":{}", self.port)
    }
}

/// Splits `HOST` or `HOST:PORT`.
fn parse_authority(text: &str) -> Option<(Host, Option<u16>)> {
    let end_of_host = text.rfind(']').map_or(0, |bracket| bracket + 1);
    let (host, port) = match text[end_of_host..].find(':') {
        Some(colon) => {
            let (host, port) = text.split_at(end_of_host + colon);
            let digits = &port[1..];
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            (host, Some(digits))
        }
        None => (text, None),
    };
    let Ok(host) = Host::parse(host) else {
        return None;
    };
    match port {
        None => Some((host, None)),
        Some(digits) => Some((host, Some(parse_value(digits)?))),
    }
}

/// The origins of a server.
#[derive(Debug, Clone)]
pub(crate) struct AllowedOrigins {
    origins: Vec<WebOrigin>,
}

impl AllowedOrigins {
    /// Allows the addresses of the listeners, and the public address of the server.
    pub(crate) fn new(
        listeners: impl IntoIterator<Item = (SocketAddr, WebScheme)>,
        public: Option<WebOrigin>,
    ) -> Self {
        let own = listeners.into_iter().flat_map(|(address, scheme)| {
            let port = address.port();
            let hosts = own_hosts(address.ip()).into_iter();
            hosts.map(move |host| WebOrigin { scheme, host, port })
        });
        Self {
            origins: own.chain(public).collect(),
        }
    }

    /// Returns these origins with the address at which a connection arrived: a listener on all
    /// addresses has many. An address cannot be the name of a foreign page.
    pub(crate) fn with_local(&self, local: SocketAddr, scheme: WebScheme) -> Self {
        let mut allowed = self.clone();
        allowed.origins.push(WebOrigin {
            scheme,
            host: Host::from(local.ip()),
            port: local.port(),
        });
        allowed
    }

    /// Returns whether an authority, as in a `Host` header, is one of this server.
    pub(crate) fn has_host(&self, text: &str) -> bool {
        parse_authority(text).is_some_and(|(host, port)| {
            self.origins
                .iter()
                .any(|origin| origin.has_authority(&host, port))
        })
    }

    /// Returns whether a text is an origin of this server.
    pub(crate) fn has_origin(&self, text: &str) -> bool {
        WebOrigin::parse(text).is_some_and(|origin| self.origins.contains(&origin))
    }
}

/// Returns the hosts by which programs of this machine reach a listener.
fn own_hosts(address: IpAddr) -> Vec<Host> {
    let mut hosts = vec![Host::from(address)];
    if address.is_loopback() || address.is_unspecified() {
        let loopback = [
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::LOCALHOST),
        ];
        hosts.extend(loopback.map(Host::from));
        hosts.extend(Host::parse("localhost"));
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local() -> AllowedOrigins {
        let listener = "127.0.0.1:8000".parse().unwrap();
        let public = WebOrigin::parse("https://ralph.example");
        AllowedOrigins::new([(listener, WebScheme::Http)], public)
    }

    #[test]
    fn only_exact_hosts_are_allowed() {
        for host in [
            "127.0.0.1:8000",
            "localhost:8000",
            "LocalHost:8000",
            "[::1]:8000",
            "[::ffff:127.0.0.1]:8000",
            "ralph.example",
            "ralph.example:443",
        ] {
            assert!(local().has_host(host), "{host}");
        }
        for host in [
            "",
            "evil.com",
            "127.0.0.1",
            "127.0.0.1:8001",
            "127.0.0.1:08000x",
            "127.0.0.1.nip.io:8000",
            "127.1:8000",
            "0x7f.0.0.1:8000",
            "2130706433:8000",
            "127.0.0.2:8000",
            "localhost.evil.com:8000",
            "evil.com#localhost:8000",
            "user@localhost:8000",
            "localhost:8000:8000",
            "localhost:",
            "localhost:8000/",
            "[::1:8000",
            "::1:8000",
            "ralph.example:8000",
            "ralph.example:80",
            "xralph.example",
        ] {
            assert!(!local().has_host(host), "{host}");
        }
    }

    #[test]
    fn only_exact_origins_are_allowed() {
        for origin in [
            "http://127.0.0.1:8000",
            "http://localhost:8000",
            "http://[::1]:8000",
            "https://ralph.example",
        ] {
            assert!(local().has_origin(origin), "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://evil",
            "https://127.0.0.1:8000",
            "http://127.0.0.1",
            "http://localhost:3000",
            "http://ralph.example",
            "https://ralph.example.evil.com",
            "https://ralph.example/",
            "file://127.0.0.1:8000",
            "http://127.0.0.1:8000, http://evil",
        ] {
            assert!(!local().has_origin(origin), "{origin}");
        }
    }

    #[test]
    fn a_connection_adds_only_its_own_address() {
        let listener = "0.0.0.0:8000".parse().unwrap();
        let allowed = AllowedOrigins::new([(listener, WebScheme::Https)], None);
        assert!(!allowed.has_host("192.0.2.7:8000"));
        let allowed = allowed.with_local("192.0.2.7:8000".parse().unwrap(), WebScheme::Https);
        assert!(allowed.has_host("192.0.2.7:8000"));
        assert!(!allowed.has_host("192.0.2.8:8000"));
        assert!(allowed.has_origin("https://192.0.2.7:8000"));
    }

    #[test]
    fn usual_ports_are_left_out() {
        for text in [
            "http://localhost",
            "https://localhost:8443",
            "http://[::1]:81",
        ] {
            assert_eq!(WebOrigin::parse(text).unwrap().to_string(), text);
        }
        let usual = WebOrigin::parse("https://localhost:443").unwrap();
        assert_eq!(usual.to_string(), "https://localhost");
    }
}
