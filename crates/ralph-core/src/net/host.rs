//! Hosts and endpoints in canonical form.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

/// The longest name, in bytes.
const MAX_NAME: usize = 253;
/// The longest label of a name, in bytes.
const MAX_LABEL: usize = 63;

/// A lower-case name without a trailing dot, or an address. Equivalent hosts compare equal, and
/// spellings that programs could interpret differently are rejected.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Host(HostKind);

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum HostKind {
    Name(String),
    Address(IpAddr),
}

/// The reason why a host is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The text is empty.
    #[error("is empty")]
    Empty,
    /// The name is too long.
    #[error("has more than {MAX_NAME} bytes")]
    TooLong,
    /// A label that is empty, too long, or starts or ends with `-`.
    #[error("has a label that is empty, longer than {MAX_LABEL} bytes, or starts or ends with `-`")]
    Label,
    /// A name with non-ASCII characters.
    #[error("is not ASCII: write it with `xn--`")]
    NotAscii,
    /// A space, a NUL, `@`, `/`, `%` or another character that is not valid in a name.
    #[error("has a character that is not valid in a host name")]
    Character,
    /// A number that some programs interpret as an address: `0x7f.1`, `2130706433`, `127.1`.
    #[error("resembles an IPv4 address but is not in dotted decimal notation")]
    MalformedIpv4,
    /// Brackets without an IPv6 address.
    #[error("has brackets that do not enclose an IPv6 address")]
    MalformedIpv6,
    /// An invalid port.
    #[error("has a port that is not a number from 1 to 65535")]
    Port,
}

impl Host {
    /// Parses a name, an IPv4 address, or an IPv6 address in brackets.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if let Some(rest) = text.strip_prefix('[') {
            let inner = rest.strip_suffix(']').ok_or(HostError::MalformedIpv6)?;
            let address: Ipv6Addr = inner.parse().map_err(|_| HostError::MalformedIpv6)?;
            return Ok(Self::from(IpAddr::V6(address)));
        }
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        if !text.is_ascii() {
            return Err(HostError::NotAscii);
        }
        let is_part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        if !text.bytes().all(is_part) {
            return Err(HostError::Character);
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        if name.len() > MAX_NAME {
            return Err(HostError::TooLong);
        }
        if name.split('.').any(|label| !is_label(label)) {
            return Err(HostError::Label);
        }
        if ends_in_number(name) {
            // Only the canonical spelling is accepted: no trailing dot, no leading zeros.
            let address: Ipv4Addr = text.parse().map_err(|_| HostError::MalformedIpv4)?;
            return Ok(Self(HostKind::Address(IpAddr::V4(address))));
        }
        Ok(Self(HostKind::Name(name.to_ascii_lowercase())))
    }

    /// Returns the name, unless the host is an address.
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            HostKind::Name(name) => Some(name),
            HostKind::Address(_) => None,
        }
    }

    /// Returns the address, unless the host is a name.
    pub fn address(&self) -> Option<IpAddr> {
        match self.0 {
            HostKind::Name(_) => None,
            HostKind::Address(address) => Some(address),
        }
    }

    /// Returns whether the host is a proper subdomain of `parent`.
    pub fn is_subdomain_of(&self, parent: &str) -> bool {
        self.name()
            .and_then(|name| name.strip_suffix(parent))
            .is_some_and(|front| front.len() > 1 && front.ends_with('.'))
    }
}

impl From<IpAddr> for Host {
    /// Converts an address; an IPv4-mapped IPv6 address becomes the IPv4 address.
    fn from(address: IpAddr) -> Self {
        Self(HostKind::Address(address.to_canonical()))
    }
}

impl TryFrom<String> for Host {
    type Error = HostError;

    fn try_from(text: String) -> Result<Self, HostError> {
        Self::parse(&text)
    }
}

impl From<Host> for String {
    fn from(host: Host) -> Self {
        host.to_string()
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            HostKind::Name(name) => f.write_str(name),
            HostKind::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            HostKind::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

fn is_label(label: &str) -> bool {
    (1..=MAX_LABEL).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-')
}

/// Returns whether a browser or a C library would try to parse the name as an IPv4 address.
fn ends_in_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    let is_hex = last
        .strip_prefix("0x")
        .or_else(|| last.strip_prefix("0X"))
        .is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    is_hex || last.bytes().all(|b| b.is_ascii_digit())
}

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Endpoint {
    pub host: Host,
    pub port: u16,
}

impl Endpoint {
    /// Parses `host` or `host:port`, with `default_port` for the former.
    pub fn parse(text: &str, default_port: u16) -> Result<Self, HostError> {
        let (host, port) = split_port(text)?;
        Ok(Self {
            host: Host::parse(host)?,
            port: port.unwrap_or(default_port),
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Splits off a trailing port. A colon inside brackets does not start a port.
pub(super) fn split_port(text: &str) -> Result<(&str, Option<u16>), HostError> {
    let after_brackets = text.rfind(']').map_or(0, |at| at + 1);
    let Some(colon) = text[after_brackets..].find(':') else {
        return Ok((text, None));
    };
    let (host, port) = text.split_at(after_brackets + colon);
    let digits = &port[1..];
    let is_plain = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
    match digits.parse() {
        Ok(port) if is_plain && port > 0 => Ok((host, Some(port))),
        Ok(_) | Err(_) => Err(HostError::Port),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_parsed_into_canonical_form() {
        for (text, canonical) in [
            ("allowed.com", "allowed.com"),
            ("ALLOWED.com.", "allowed.com"),
            ("a", "a"),
            ("a_b.example", "a_b.example"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
            ("1.example", "1.example"),
            ("0x7f.example", "0x7f.example"),
            ("93.184.216.34", "93.184.216.34"),
            ("[2001:DB8::1]", "[2001:db8::1]"),
            ("[2001:db8:0:0:0:0:0:1]", "[2001:db8::1]"),
            ("[::ffff:93.184.216.34]", "93.184.216.34"),
            ("[::ffff:5db8:d822]", "93.184.216.34"),
        ] {
            let host = Host::parse(text).unwrap();
            assert_eq!(host.to_string(), canonical, "{text}");
            assert_eq!(Host::parse(canonical), Ok(host), "{text}");
        }
    }

    #[test]
    fn ambiguous_spellings_are_rejected() {
        let long = format!("{}.com", "a.".repeat(200));
        for (text, error) in [
            ("", HostError::Empty),
            (".", HostError::Label),
            ("a..b", HostError::Label),
            (".allowed.com", HostError::Label),
            ("allowed.com..", HostError::Label),
            ("-a.com", HostError::Label),
            ("a-.com", HostError::Label),
            (&"a".repeat(64), HostError::Label),
            (&long, HostError::TooLong),
            ("attacker\0.allowed.com", HostError::Character),
            ("allowed.com\0", HostError::Character),
            ("allowed.com evil.com", HostError::Character),
            (" allowed.com", HostError::Character),
            ("allowed.com\t", HostError::Character),
            ("allowed.com\r\nHost: evil", HostError::Character),
            ("allowed.com@evil", HostError::Character),
            ("user:pass@evil", HostError::Character),
            ("allowed.com/evil", HostError::Character),
            ("allowed.com\\evil", HostError::Character),
            ("allowed.com#evil", HostError::Character),
            ("allowed.com?evil", HostError::Character),
            ("allowed%2ecom", HostError::Character),
            ("allowed.com:443", HostError::Character),
            ("*.allowed.com", HostError::Character),
            ("bücher.example", HostError::NotAscii),
            ("аllowed.com", HostError::NotAscii),
            ("allowed。com", HostError::NotAscii),
            ("2130706433", HostError::MalformedIpv4),
            ("0x7f000001", HostError::MalformedIpv4),
            ("0X7F000001", HostError::MalformedIpv4),
            ("017700000001", HostError::MalformedIpv4),
            ("127.1", HostError::MalformedIpv4),
            ("127.0.1", HostError::MalformedIpv4),
            ("0177.0.0.1", HostError::MalformedIpv4),
            ("127.0.0.01", HostError::MalformedIpv4),
            ("127.0.0.0x1", HostError::MalformedIpv4),
            ("127.0.0.1.", HostError::MalformedIpv4),
            ("1.2.3.4.5", HostError::MalformedIpv4),
            ("256.1.1.1", HostError::MalformedIpv4),
            ("allowed.com.1", HostError::MalformedIpv4),
            ("allowed.0x", HostError::MalformedIpv4),
            ("::1", HostError::Character),
            ("[::1", HostError::MalformedIpv6),
            ("[]", HostError::MalformedIpv6),
            ("[::1%eth0]", HostError::MalformedIpv6),
            ("[127.0.0.1]", HostError::MalformedIpv6),
            ("[::1]x", HostError::MalformedIpv6),
        ] {
            assert_eq!(Host::parse(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn endpoints_have_an_optional_port() {
        for (text, endpoint) in [
            ("a.com", Ok("a.com:443")),
            ("A.com.:8443", Ok("a.com:8443")),
            ("[::1]", Ok("[::1]:443")),
            ("[::1]:80", Ok("[::1]:80")),
            ("a.com:", Err(HostError::Port)),
            ("a.com:0", Err(HostError::Port)),
            ("a.com:080", Err(HostError::Port)),
            ("a.com:+80", Err(HostError::Port)),
            ("a.com:65536", Err(HostError::Port)),
            ("a.com:80:80", Err(HostError::Port)),
            ("a.com:443@evil.com", Err(HostError::Port)),
            ("::1", Err(HostError::Port)),
            (":80", Err(HostError::Empty)),
        ] {
            let parsed = Endpoint::parse(text, 443).map(|endpoint| endpoint.to_string());
            assert_eq!(parsed.as_deref(), endpoint.as_ref().copied(), "{text}");
        }
    }

    #[test]
    fn subdomains_are_compared_by_label() {
        let host = |text| Host::parse(text).unwrap();
        assert!(host("a.x.com").is_subdomain_of("x.com"));
        assert!(host("a.b.x.com").is_subdomain_of("x.com"));
        assert!(!host("x.com").is_subdomain_of("x.com"));
        assert!(!host("ax.com").is_subdomain_of("x.com"));
        assert!(!host("1.2.3.4").is_subdomain_of("3.4"));
    }

    #[test]
    fn a_host_is_serialized_as_text() {
        let host: Host = serde_json::from_str("\"A.Example.\"").unwrap();
        assert_eq!(serde_json::to_string(&host).unwrap(), "\"a.example\"");
        assert!(serde_json::from_str::<Host>("\"a b\"").is_err());
    }
}
