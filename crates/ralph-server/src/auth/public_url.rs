//! The address of a server for its users, if it differs from the one it listens on.

use ralph_app::AppError;
use url::Url;

use super::web_origin::{WebOrigin, WebScheme};

/// The address of a server for its users: behind a proxy, or the name in its certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl {
    pub(crate) origin: WebOrigin,
    /// The path below which the server is reachable: empty, or `/ralph`.
    pub(crate) base_path: String,
}

impl PublicUrl {
    /// Parses an address like `https://ralph.example/path/`.
    pub fn parse(text: &str) -> Result<Self, AppError> {
        let invalid = |why: String| {
            AppError::usage(
                format!("`{text}` cannot be the public address"),
                why,
                "name it as users type it, such as `https://ralph.example/path/`",
            )
        };
        let url = Url::parse(text).map_err(|error| invalid(error.to_string()))?;
        let has_more = !url.username().is_empty()
            || url.password().is_some()
            || url.query().is_some()
            || url.fragment().is_some();
        if has_more {
            return Err(invalid("it has more than a host and a path".into()));
        }
        let origin = WebOrigin::parse(&url.origin().ascii_serialization());
        let Some(origin) = origin else {
            return Err(invalid("it is not an address of http or https".into()));
        };
        let is_loopback = origin.host.address().is_some_and(|ip| ip.is_loopback())
            || origin.host.name() == Some("localhost");
        if origin.scheme == WebScheme::Http && !is_loopback {
            return Err(invalid(
                "cookies and tokens would be sent without encryption".into(),
            ));
        }
        let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
        let path = url.path().trim_end_matches('/');
        if !path.bytes().all(is_path) || path.contains("//") {
            return Err(invalid(
                "its path may have letters, digits, `-`, `.`, `_` and `~`".into(),
            ));
        }
        Ok(Self {
            base_path: path.to_owned(),
            origin,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_an_origin_and_a_path() {
        for (text, origin, path) in [
            ("https://ralph.example", "https://ralph.example", ""),
            ("https://Ralph.Example:443/", "https://ralph.example", ""),
            (
                "https://h.example:8443/proxy/8000/",
                "https://h.example:8443",
                "/proxy/8000",
            ),
            ("http://localhost:9000", "http://localhost:9000", ""),
            ("http://127.0.0.1:9000", "http://127.0.0.1:9000", ""),
        ] {
            let url = PublicUrl::parse(text).unwrap();
            assert_eq!(url.origin.to_string(), origin);
            assert_eq!(url.base_path, path);
        }
    }

    #[test]
    fn other_addresses_are_rejected() {
        for text in [
            "ralph.example",
            "ftp://ralph.example",
            "http://ralph.example",
            "https://user@ralph.example",
            "https://ralph.example/?a=b",
            "https://ralph.example/#a",
            "https://ralph.example/a%2fb",
            "https://ralph.example/a;b",
            "https://ralph.example/a//b",
        ] {
            assert!(PublicUrl::parse(text).is_err(), "{text}");
        }
    }
}
