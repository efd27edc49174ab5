//! The `file://` URLs of records.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use ralph_guest::available;

/// Returns the URL of an absolute path.
pub(super) fn from_path(path: &Path) -> String {
    let mut url = String::from("file://");
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            url.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            write!(url, "%{byte:02X}").expect("writing to a string cannot fail");
        }
    }
    url
}

/// Returns the path of a URL created by [`from_path`].
pub(super) fn to_path(url: &str) -> Option<PathBuf> {
    let mut rest = url.strip_prefix("file://")?.as_bytes();
    let mut bytes = Vec::with_capacity(rest.len());
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%' {
            let digits = available(std::str::from_utf8(after.get(..2)?))?;
            let both_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            bytes.push(available(u8::from_str_radix(digits, 16)).filter(|_| both_hex)?);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    let path = PathBuf::from(OsString::from_vec(bytes));
    path.is_absolute().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_round_trips_through_its_url() {
        let odd = OsString::from_vec(b"/a/\xff#?%25+ \n".to_vec());
        let cases = [
            (
                PathBuf::from("/state/pulls/0a/1.json"),
                "file:///state/pulls/0a/1.json",
            ),
            (
                PathBuf::from("/Users/me/Library/Application Support/x"),
                "file:///Users/me/Library/Application%20Support/x",
            ),
            (PathBuf::from("/ü"), "file:///%C3%BC"),
            (PathBuf::from(odd), "file:///a/%FF%23%3F%2525%2B%20%0A"),
        ];
        for (path_of_case, url) in cases {
            assert_eq!(from_path(&path_of_case), url);
            assert_eq!(to_path(url), Some(path_of_case));
        }
    }

    #[test]
    fn invalid_urls_are_rejected() {
        for text in [
            "",
            "/a",
            "https://example.com/pull/1",
            "file://",
            "file://host/a",
            "file:///a%2",
            "file:///a%+1",
            "file:///a%é",
        ] {
            assert_eq!(to_path(text), None, "{text}");
        }
    }
}
