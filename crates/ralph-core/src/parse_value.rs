//! Parses values whose parse error adds nothing: the text is such a value, or it is not.

use std::str::FromStr;

/// Returns the value that a text stands for, if it is one.
pub fn parse_value<T: FromStr>(text: &str) -> Option<T> {
    let Ok(value) = text.parse() else {
        return None;
    };
    Some(value)
}
