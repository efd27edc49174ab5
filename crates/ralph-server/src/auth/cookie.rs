//! The cookie of a browser's session.

use axum::http::{HeaderMap, HeaderValue, header};
use jiff::Timestamp;
use ralph_core::secret::Secret;

use super::header_text::header_text;
use super::web_origin::WebScheme;

/// The most cookies of this name that are tried: a browser sends one per path.
const MAX_TRIED: usize = 4;

/// The name and the attributes of the cookie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionCookie {
    name: &'static str,
    attributes: String,
}

impl SessionCookie {
    /// Returns the cookie for the address that browsers use.
    pub(crate) fn new(scheme: WebScheme, base_path: &str) -> Self {
        let flags = "HttpOnly; SameSite=Strict";
        match (scheme, base_path) {
            (WebScheme::Http, _) => Self {
                name: "ralph_session",
                attributes: format!("Path={base_path}/; {flags}"),
            },
            (WebScheme::Https, "") => Self {
                name: "__Host-ralph_session",
                attributes: format!("Path=/; {flags}; Secure"),
            },
            // `__Host-` requires the path `/`.
            (WebScheme::Https, _) => Self {
                name: "__Secure-ralph_session",
                attributes: format!("Path={base_path}/; {flags}; Secure"),
            },
        }
    }

    /// Returns the header that stores a session in the browser.
    pub(crate) fn set(&self, cookie: &Secret, expires: Timestamp, now: Timestamp) -> HeaderValue {
        let seconds = expires.duration_since(now).as_secs().max(0);
        self.header(&format!("{}; Max-Age={seconds}", cookie.expose()))
    }

    /// Returns the header that removes the session from the browser.
    pub(crate) fn clear(&self) -> HeaderValue {
        self.header("; Max-Age=0")
    }

    fn header(&self, value: &str) -> HeaderValue {
        let text = format!("{}={value}; {}", self.name, self.attributes);
        let mut header =
            HeaderValue::try_from(text).expect("a cookie consists of visible characters");
        header.set_sensitive(true);
        header
    }

    /// Returns the values of this cookie in a request.
    pub(crate) fn values<'a>(&self, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
        let name = self.name;
        headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(header_text)
            .flat_map(|value| value.split(';'))
            .filter_map(move |pair| {
                let (key, value) = pair.trim().split_once('=')?;
                (key == name).then_some(value)
            })
            .take(MAX_TRIED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_follow_the_address() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let set = |scheme, path| {
            let cookie = SessionCookie::new(scheme, path);
            let value = cookie.set(&Secret::new("abc".into()), at(100), at(40));
            value.to_str().unwrap().to_owned()
        };
        assert_eq!(
            set(WebScheme::Http, ""),
            "ralph_session=abc; Max-Age=60; Path=/; HttpOnly; SameSite=Strict"
        );
        assert_eq!(
            set(WebScheme::Https, ""),
            "__Host-ralph_session=abc; Max-Age=60; Path=/; HttpOnly; SameSite=Strict; Secure"
        );
        assert_eq!(
            set(WebScheme::Https, "/ralph"),
            "__Secure-ralph_session=abc; Max-Age=60; Path=/ralph/; HttpOnly; SameSite=Strict; Secure"
        );
    }

    #[test]
    fn cookies_are_found_by_their_exact_name() {
        let mut headers = HeaderMap::new();
        for value in [
            "a=1; ralph_session=one; xralph_session=no",
            "ralph_session=two;ralph_session=3; ralph_session=4; ralph_session=5",
        ] {
            headers.append(header::COOKIE, HeaderValue::from_static(value));
        }
        let cookie = SessionCookie::new(WebScheme::Http, "");
        let values: Vec<&str> = cookie.values(&headers).collect();
        assert_eq!(values, ["one", "two", "3", "4"]);
    }
}
