//! Header values as text.

use hyper::header::HeaderValue;

/// Returns a header value, unless it has bytes beyond visible ASCII.
pub(crate) fn header_text(value: &HeaderValue) -> Option<&str> {
    let Ok(text) = value.to_str() else {
        return None;
    };
    Some(text)
}
