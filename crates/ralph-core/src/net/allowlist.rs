//! The hosts that a sandbox may reach.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::host::split_port;
use super::{Endpoint, Host, HostError};

/// The ports covered by an entry without a port.
const WEB_PORTS: [u16; 2] = [80, 443];

/// An entry of an allowlist: `host`, `host:port`, `*.host` or `*.host:port`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AllowlistEntry {
    host: Host,
    host_match: HostMatch,
    port: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum HostMatch {
    /// The host itself.
    Exact,
    /// All subdomains, but not the host itself.
    Subdomains,
}

/// The reason why an allowlist entry is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AllowlistEntryError {
    /// A URL instead of a host.
    #[error("`{text}` is a URL: write only its host, as `example.com` or `example.com:8443`")]
    Url { text: String },
    /// A `*` that is too broad or not at the start.
    #[error(
        "`{text}` has a `*` that is not followed by at least two labels, as in `*.example.com`"
    )]
    Star { text: String },
    /// An invalid host.
    #[error("`{text}` {reason}")]
    Host { text: String, reason: HostError },
}

impl AllowlistEntry {
    /// Parses an entry.
    pub fn parse(text: &str) -> Result<Self, AllowlistEntryError> {
        let text = text.trim();
        let fails = |reason| AllowlistEntryError::Host {
            text: text.to_owned(),
            reason,
        };
        if text.contains('/') {
            let text = text.to_owned();
            return Err(AllowlistEntryError::Url { text });
        }
        let (host, port) = split_port(text).map_err(fails)?;
        let (host_match, host) = match host.strip_prefix("*.") {
            Some(parent) => (HostMatch::Subdomains, parent),
            None => (HostMatch::Exact, host),
        };
        let star = || AllowlistEntryError::Star {
            text: text.to_owned(),
        };
        if host.contains('*') {
            return Err(star());
        }
        let host = Host::parse(host).map_err(fails)?;
        // `*.com` would allow half of the Internet.
        let is_narrow = || host.name().is_some_and(|name| name.contains('.'));
        if host_match == HostMatch::Subdomains && !is_narrow() {
            return Err(star());
        }
        Ok(Self {
            host,
            host_match,
            port,
        })
    }

    /// Returns whether the entry matches the host on any port.
    pub fn matches_host(&self, host: &Host) -> bool {
        match self.host_match {
            HostMatch::Exact => self.host == *host,
            HostMatch::Subdomains => self
                .host
                .name()
                .is_some_and(|parent| host.is_subdomain_of(parent)),
        }
    }

    /// Returns whether the entry covers the endpoint. An entry without a port covers 80 and 443.
    pub fn covers(&self, endpoint: &Endpoint) -> bool {
        let port = match self.port {
            Some(port) => port == endpoint.port,
            None => WEB_PORTS.contains(&endpoint.port),
        };
        port && self.matches_host(&endpoint.host)
    }

    /// Returns whether the entry covers TLS to all hosts of `other`. Only ports 80 and 443 count,
    /// because TLS on other ports is never intercepted.
    fn covers_tls_of(&self, other: &Self) -> bool {
        let is_web = other.port.is_none_or(|port| WEB_PORTS.contains(&port));
        let has_tls = self.port.is_none_or(|port| port == 443);
        let has_hosts = match other.host_match {
            HostMatch::Exact => self.matches_host(&other.host),
            HostMatch::Subdomains => {
                self.host_match == HostMatch::Subdomains
                    && (self.host == other.host || self.matches_host(&other.host))
            }
        };
        is_web && has_tls && has_hosts
    }

    /// Returns the host, without a leading `*.`.
    pub fn host(&self) -> &Host {
        &self.host
    }
}

impl FromStr for AllowlistEntry {
    type Err = AllowlistEntryError;

    fn from_str(text: &str) -> Result<Self, AllowlistEntryError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for AllowlistEntry {
    type Error = AllowlistEntryError;

    fn try_from(text: String) -> Result<Self, AllowlistEntryError> {
        Self::parse(&text)
    }
}

impl From<AllowlistEntry> for String {
    fn from(entry: AllowlistEntry) -> Self {
        entry.to_string()
    }
}

impl From<Host> for AllowlistEntry {
    /// Creates an entry for exactly this host on ports 80 and 443.
    fn from(host: Host) -> Self {
        Self {
            host,
            host_match: HostMatch::Exact,
            port: None,
        }
    }
}

impl fmt::Display for AllowlistEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let star = match self.host_match {
            HostMatch::Exact => "",
            HostMatch::Subdomains => "*.",
        };
        write!(f, "{star}{}", self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// A list of allowed hosts. An empty list allows nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Allowlist {
    entries: Vec<AllowlistEntry>,
}

impl Allowlist {
    /// Parses entries and fails at the first invalid one.
    pub fn parse<'a>(
        lines: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, AllowlistEntryError> {
        lines.into_iter().map(AllowlistEntry::parse).collect()
    }

    /// Returns whether the endpoint is allowed.
    pub fn covers(&self, endpoint: &Endpoint) -> bool {
        self.entries.iter().any(|entry| entry.covers(endpoint))
    }

    /// Returns whether the host is allowed on any port.
    pub fn matches_host(&self, host: &Host) -> bool {
        self.entries.iter().any(|entry| entry.matches_host(host))
    }

    /// Adds an entry unless the list already contains it.
    pub fn add(&mut self, entry: AllowlistEntry) {
        if !self.entries.contains(&entry) {
            self.entries.push(entry);
        }
    }

    /// Returns whether the list covers TLS to all hosts of `entry`.
    pub fn covers_tls_of(&self, entry: &AllowlistEntry) -> bool {
        self.entries.iter().any(|own| own.covers_tls_of(entry))
    }

    /// Returns the entries in the order in which they were added.
    pub fn entries(&self) -> &[AllowlistEntry] {
        &self.entries
    }
}

impl FromIterator<AllowlistEntry> for Allowlist {
    fn from_iter<I: IntoIterator<Item = AllowlistEntry>>(entries: I) -> Self {
        let mut list = Self::default();
        for entry in entries {
            list.add(entry);
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(text: &str) -> Endpoint {
        Endpoint::parse(text, 443).unwrap()
    }

    #[test]
    fn only_listed_endpoints_are_covered() {
        let list = [
            "allowed.com",
            "*.wild.org",
            "odd.net:8443",
            "1.2.3.4",
            "*.low.io:22",
        ];
        let list = Allowlist::parse(list).unwrap();
        for (text, covered) in [
            ("allowed.com", true),
            ("ALLOWED.com.", true),
            ("allowed.com:80", true),
            ("allowed.com:8080", false),
            ("allowed.com.evil.com", false),
            ("evilallowed.com", false),
            ("sub.allowed.com", false),
            ("allowed.co", false),
            ("com", false),
            ("wild.org", false),
            ("a.wild.org", true),
            ("a.b.wild.org", true),
            ("awild.org", false),
            ("a.wild.org.evil.com", false),
            ("a.wild.org:8080", false),
            ("odd.net", false),
            ("odd.net:80", false),
            ("odd.net:8443", true),
            ("1.2.3.4", true),
            ("[::ffff:1.2.3.4]", true),
            ("1.2.3.5", false),
            ("a.low.io:22", true),
            ("a.low.io", false),
        ] {
            assert_eq!(list.covers(&endpoint(text)), covered, "{text}");
        }
        assert!(list.matches_host(&endpoint("odd.net").host));
        assert!(!list.matches_host(&endpoint("evil.net").host));
    }

    #[test]
    fn tls_coverage_requires_all_hosts_of_an_entry() {
        let list = Allowlist::parse(["a.com", "*.b.com", "c.com:443", "d.com:80"]).unwrap();
        for (entry, covered) in [
            ("a.com", true),
            ("a.com:443", true),
            ("a.com:8443", false),
            ("*.a.com", false),
            ("b.com", false),
            ("x.b.com", true),
            ("*.b.com", true),
            ("*.x.b.com", true),
            ("c.com", true),
            ("d.com", false),
        ] {
            let parsed = AllowlistEntry::parse(entry).unwrap();
            assert_eq!(list.covers_tls_of(&parsed), covered, "{entry}");
        }
    }

    #[test]
    fn an_empty_list_covers_nothing() {
        let list = Allowlist::default();
        for text in ["allowed.com", "localhost", "1.2.3.4", "[::1]:80"] {
            assert!(!list.covers(&endpoint(text)), "{text}");
            assert!(!list.matches_host(&endpoint(text).host), "{text}");
        }
    }

    #[test]
    fn entries_round_trip_through_text() {
        for text in ["a.com", "a.com:8443", "*.a.com", "*.a.com:22", "[::1]:80"] {
            assert_eq!(AllowlistEntry::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(
            AllowlistEntry::parse(" *.A.com. ").unwrap().to_string(),
            "*.a.com"
        );
    }

    #[test]
    fn invalid_entries_are_rejected_with_a_reason() {
        for (text, error) in [
            (
                "https://a.com/x",
                "`https://a.com/x` is a URL: write only its host, as `example.com` or `example.com:8443`",
            ),
            (
                "*.com",
                "`*.com` has a `*` that is not followed by at least two labels, as in `*.example.com`",
            ),
            (
                "*",
                "`*` has a `*` that is not followed by at least two labels, as in `*.example.com`",
            ),
            (
                "a.*.com",
                "`a.*.com` has a `*` that is not followed by at least two labels, as in `*.example.com`",
            ),
            (
                "*.1.2.3.4",
                "`*.1.2.3.4` has a `*` that is not followed by at least two labels, as in `*.example.com`",
            ),
            (
                "a@b.com",
                "`a@b.com` has a character that is not valid in a host name",
            ),
            ("", "`` is empty"),
        ] {
            assert_eq!(
                AllowlistEntry::parse(text).unwrap_err().to_string(),
                error,
                "{text}"
            );
        }
    }
}
