//! The text of a header.

use axum::http::HeaderValue;

/// Returns the text of a header that consists of visible characters.
pub(crate) fn header_text(value: &HeaderValue) -> Option<&str> {
    let Ok(text) = value.to_str() else {
        return None;
    };
    Some(text)
}
