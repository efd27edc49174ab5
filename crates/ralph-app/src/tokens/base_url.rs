//! The address of an API that may receive a credential.

use std::fmt;
use std::net::IpAddr;

use hyper::Uri;

/// The address of an API, without the path of a call. A credential is sent only to this address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl {
    text: String,
    host: String,
    port: u16,
    path: String,
}

/// The reason why a text is not a valid address for a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BaseUrlError {
    /// The text is not a URL.
    #[error("an address looks like `https://host` or `https://host:port/path`")]
    Form,
    /// The address is not encrypted, so the credential could be intercepted.
    #[error("`http` would send the token unencrypted, which is only allowed to this machine")]
    Readable,
    /// The address has parts that are not permitted.
    #[error("an address cannot contain a user, `?` or `#`")]
    Parts,
}

impl BaseUrl {
    /// Parses an address and ignores a trailing slash.
    pub fn parse(text: &str) -> Result<Self, BaseUrlError> {
        if text.contains(['@', '?', '#']) {
            return Err(BaseUrlError::Parts);
        }
        let uri: Uri = text.parse().map_err(|_| BaseUrlError::Form)?;
        let host = uri.host().filter(|host| !host.is_empty());
        let host = host.ok_or(BaseUrlError::Form)?.to_owned();
        let is_encrypted = match uri.scheme_str() {
            Some("https") => true,
            Some("http") if is_loopback(&host) => false,
            Some("http") => return Err(BaseUrlError::Readable),
            Some(_) | None => return Err(BaseUrlError::Form),
        };
        Ok(Self {
            text: text.trim_end_matches('/').to_owned(),
            port: uri
                .port_u16()
                .unwrap_or(if is_encrypted { 443 } else { 80 }),
            path: uri.path().trim_end_matches('/').to_owned(),
            host,
        })
    }

    /// Returns whether the server is on this machine.
    pub fn is_on_this_machine(&self) -> bool {
        is_loopback(&self.host)
    }

    /// Returns the address as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the host; an IPv6 address has no brackets.
    pub fn host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the path prefix of calls, without a trailing slash.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_is_split_into_parts() {
        for (text, expected) in [
            ("https://api.example.com", ("api.example.com", 443, "")),
            (
                "https://api.example.com:8443/v1/",
                ("api.example.com", 8443, "/v1"),
            ),
            ("http://127.0.0.1:18080", ("127.0.0.1", 18080, "")),
            ("http://[::1]:80/x", ("::1", 80, "/x")),
            ("http://localhost", ("localhost", 80, "")),
        ] {
            let url = BaseUrl::parse(text).unwrap();
            assert_eq!((url.host(), url.port(), url.path()), expected);
        }
    }

    #[test]
    fn unencrypted_remote_addresses_are_rejected() {
        for (text, why) in [
            ("", BaseUrlError::Form),
            ("api.example.com", BaseUrlError::Form),
            ("ftp://api.example.com", BaseUrlError::Form),
            ("https://", BaseUrlError::Form),
            ("http://api.example.com", BaseUrlError::Readable),
            ("http://localhost.example.com", BaseUrlError::Readable),
            ("http://10.0.0.7:4000", BaseUrlError::Readable),
            ("https://user@api.example.com", BaseUrlError::Parts),
            ("https://api.example.com/?a=b", BaseUrlError::Parts),
        ] {
            assert_eq!(BaseUrl::parse(text), Err(why), "{text}");
        }
    }
}
