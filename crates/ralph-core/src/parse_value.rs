//! Parses values whose parse error adds nothing: the text is such a value, or it is not.

use std::str::FromStr;

/// Parses a text; `None` if it is not such a value.
pub fn parse_value<T: FromStr>(text: &str) -> Option<T> {
    let Ok(value) = text.parse() else {
        return None;
    };
    Some(value)
}
