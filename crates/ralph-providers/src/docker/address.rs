//! The address of a Docker Engine, in the format of `DOCKER_HOST`.

use std::fmt;
use std::path::{Path, PathBuf};

use ralph_core::parse_value;

use super::error::DockerError;

/// The default socket.
const DEFAULT_SOCKET: &str = "/var/run/docker.sock";

/// The default port of a Docker Engine without TLS.
const DEFAULT_PORT: u16 = 2375;

/// The address of a Docker Engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DockerAddress {
    /// A Unix socket on this machine.
    Socket(PathBuf),
    /// `host:port`, without TLS.
    Tcp(String),
}

impl DockerAddress {
    /// Parses a value of `DOCKER_HOST`; `None` or an empty value means the default socket.
    pub fn parse(host: Option<&str>) -> Result<Self, DockerError> {
        let Some(host) = host.map(str::trim).filter(|host| !host.is_empty()) else {
            return Ok(Self::Socket(PathBuf::from(DEFAULT_SOCKET)));
        };
        let invalid = |rule| DockerError::InvalidHost {
            host: host.to_owned(),
            rule,
        };
        let Some((scheme, rest)) = host.split_once("://") else {
            return Err(invalid(
                "it must start with `unix://`, `tcp://` or `http://`",
            ));
        };
        match scheme {
            "unix" if Path::new(rest).is_absolute() => Ok(Self::Socket(PathBuf::from(rest))),
            "unix" => Err(invalid("the path after `unix://` must be absolute")),
            "tcp" | "http" => parse_host_port(rest.trim_end_matches('/'))
                .map(Self::Tcp)
                .ok_or_else(|| invalid("a host name and a port must follow the scheme")),
            "ssh" => Err(invalid(
                "ssh is not supported: forward the engine's socket with `ssh -nNTL` and use the forwarded one",
            )),
            "https" => Err(invalid(
                "TLS is not supported: forward the engine's socket with `ssh -nNTL` and use the forwarded one",
            )),
            _ => Err(invalid(
                "it must start with `unix://`, `tcp://` or `http://`",
            )),
        }
    }

    /// Returns the socket path, if the address is a socket.
    pub fn socket(&self) -> Option<&Path> {
        match self {
            Self::Socket(path) => Some(path),
            Self::Tcp(_) => None,
        }
    }
}

impl fmt::Display for DockerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp(host_port) => write!(f, "tcp://{host_port}"),
        }
    }
}

/// Returns `host:port` with the default port filled in, or `None` if the text is invalid.
fn parse_host_port(text: &str) -> Option<String> {
    let (name, port) = match text.rsplit_once(':') {
        // The colons of a bare IPv6 address are inside its brackets.
        Some((name, port)) if !port.ends_with(']') => (name, parse_value(port)?),
        Some(_) | None => (text, DEFAULT_PORT),
    };
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let inner = match name.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').filter(|address| {
            address
                .chars()
                .all(|c| c.is_ascii_hexdigit() || matches!(c, ':' | '.'))
        })?,
        None => Some(name).filter(|name| name.chars().all(allowed))?,
    };
    (!inner.is_empty()).then(|| format!("{name}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed_or_error(host: Option<&str>) -> String {
        match DockerAddress::parse(host) {
            Ok(address) => address.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn every_form_of_a_host() {
        let scheme_rule = "it must start with `unix://`, `tcp://` or `http://`";
        let host_rule = "a host name and a port must follow the scheme";
        let cases = [
            (None, "unix:///var/run/docker.sock".to_owned()),
            (Some(""), "unix:///var/run/docker.sock".to_owned()),
            (Some("  "), "unix:///var/run/docker.sock".to_owned()),
            (Some("unix:///run/user/1000/docker.sock"), "unix:///run/user/1000/docker.sock".to_owned()),
            (Some("tcp://build:2375"), "tcp://build:2375".to_owned()),
            (Some("tcp://build"), "tcp://build:2375".to_owned()),
            (Some("http://10.0.0.7:4243/"), "tcp://10.0.0.7:4243".to_owned()),
            (Some("tcp://[::1]:2375"), "tcp://[::1]:2375".to_owned()),
            (Some("tcp://[::1]"), "tcp://[::1]:2375".to_owned()),
            (
                Some("unix://docker.sock"),
                "cannot use Docker Engine `unix://docker.sock`: the path after `unix://` must be absolute".to_owned(),
            ),
            (Some("/var/run/docker.sock"), format!("cannot use Docker Engine `/var/run/docker.sock`: {scheme_rule}")),
            (Some("npipe:////./pipe/docker_engine"), format!("cannot use Docker Engine `npipe:////./pipe/docker_engine`: {scheme_rule}")),
            (Some("tcp://"), format!("cannot use Docker Engine `tcp://`: {host_rule}")),
            (Some("tcp://:2375"), format!("cannot use Docker Engine `tcp://:2375`: {host_rule}")),
            (Some("tcp://build:port"), format!("cannot use Docker Engine `tcp://build:port`: {host_rule}")),
            (Some("tcp://build:70000"), format!("cannot use Docker Engine `tcp://build:70000`: {host_rule}")),
            (Some("tcp://build/path"), format!("cannot use Docker Engine `tcp://build/path`: {host_rule}")),
            (Some("tcp://me@build:1"), format!("cannot use Docker Engine `tcp://me@build:1`: {host_rule}")),
        ];
        for (host, expected) in cases {
            assert_eq!(parsed_or_error(host), expected, "{host:?}");
        }
    }

    #[test]
    fn encrypted_hosts_get_a_hint() {
        for scheme in ["ssh", "https"] {
            let message = parsed_or_error(Some(&format!("{scheme}://build")));
            assert!(message.contains("forward the engine's socket"), "{message}");
        }
    }
}
